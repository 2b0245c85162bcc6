// Readers of files with examples: IDX, CSV, images. Each reads a file, or decodes what is in memory
// already. A file that breaks its format's rules, or declares more than it can hold, is an IoError
// that says what is wrong and where; nothing of its declared size is allocated before that is
// known. Long reads ask the interrupt check (baregrad/parallel.h).
//
// A compressed file may unpack to 1032 times its size, an image to more. What a file becomes in
// memory is limited by `max_bytes`; 0 stands for the usual limit, kUsualMaxBytes or kUsualMaxRatio
// times the file's size, whichever is more. Beyond it: an IoError that names the limit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "baregrad/dtype.h"
#include "baregrad/export.h"
#include "baregrad/tensor.h"

namespace baregrad::data {

using Bytes = std::span<const std::uint8_t>;

inline constexpr std::uint64_t kUsualMaxBytes = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kUsualMaxRatio = 100;

/// IDX, the format of MNIST, with any of its dtypes, plain or gzipped (seen from the contents).
BAREGRAD_API Tensor read_idx(const std::string& path, std::uint64_t max_bytes = 0);
BAREGRAD_API Tensor decode_idx(Bytes bytes, std::uint64_t max_bytes = 0);

struct CsvOptions {
  char delimiter = ',';
  char quote = '"';
  /// Whether the first line names the columns; unset: it does when it holds a field (not the
  /// label's) that is no number.
  std::optional<bool> header = {};
  DType dtype = DType::Float32;  ///< float32 or float64
  /// What an empty field counts as (NaN, 0, ...); unset: it is an error.
  std::optional<double> missing = {};
  /// The column that holds the label, by its name or else its number (from 0; -1 is the last); kept
  /// out of the values. Empty: there is none.
  std::string label = {};
  std::uint64_t max_bytes = 0;  ///< of the unpacked text, and of the values; 0: the usual limit
};

struct CsvTable {
  std::vector<std::string> columns;  ///< names of the values' columns; empty without a header
  Tensor values;                     ///< [rows, columns]
  /// [rows]; undefined without a label column. int64 where the labels are classes: whole numbers,
  /// or texts (`classes`). Of the values' dtype where all are numbers and one is no whole number
  /// (0.5, 1.0, 3e2, nan): those are targets of a regression.
  Tensor labels;
  /// Names of the classes when a label is no number: label i is classes[i], in the order of their
  /// bytes. At most 2^18.
  std::vector<std::string> classes;
};

/// Comma-separated numbers, plain or gzipped. Fields may be quoted (a doubled quote stands for
/// one), lines may end in CR LF, empty lines are skipped; all others must have the same number of
/// fields. A header names at most 2^20 columns.
BAREGRAD_API CsvTable read_csv(const std::string& path, const CsvOptions& options = {});
BAREGRAD_API CsvTable decode_csv(Bytes bytes, const CsvOptions& options = {});

/// An image as [channels, height, width], uint8, or uint16 where the file has more than 8 bits per
/// sample. Samples are scaled to the full range of that dtype. The kind is seen from the contents:
///   PGM and PPM  P2, P3, P5, P6 with any maxval up to 65535
///   PNG          all colour types and depths, interlaced or not; palettes become RGB, transparent
///                colours an alpha channel
/// At most 2^28 pixels.
BAREGRAD_API Tensor read_image(const std::string& path, std::uint64_t max_bytes = 0);
BAREGRAD_API Tensor decode_image(Bytes bytes, std::uint64_t max_bytes = 0);
BAREGRAD_API Tensor decode_pnm(Bytes bytes, std::uint64_t max_bytes = 0);
BAREGRAD_API Tensor decode_png(Bytes bytes, std::uint64_t max_bytes = 0);

}  // namespace baregrad::data

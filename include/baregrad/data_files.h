// Readers of files with examples: IDX, CSV, images. Each reads a file or decodes bytes in memory. A
// file that violates its format, or declares more data than it can hold, is an IoError that names
// the problem and its position. The declared size is checked before it is allocated. Long reads
// call the interrupt check (baregrad/parallel.h).
//
// A compressed file can unpack to 1032 times its size, an image to more. `max_bytes` limits the
// size in memory. 0 is the default limit: kUsualMaxBytes, or kUsualMaxRatio times the file's size
// if that is more. A larger file is an IoError that names the limit.
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

/// IDX, the format of MNIST, with any of its dtypes, plain or gzipped (detected by content).
BAREGRAD_API Tensor read_idx(const std::string& path, std::uint64_t max_bytes = 0);
BAREGRAD_API Tensor decode_idx(Bytes bytes, std::uint64_t max_bytes = 0);

struct CsvOptions {
  char delimiter = ',';
  char quote = '"';
  /// Whether the first line is a header. Unset: it is one if a field of it, other than the label's,
  /// is not a number.
  std::optional<bool> header = {};
  DType dtype = DType::Float32;  ///< float32 or float64
  /// The value of an empty field (NaN, 0, ...). Unset: an empty field is an error.
  std::optional<double> missing = {};
  /// The label column, by name or by index (from 0; -1 is the last). It is not part of the values.
  /// Empty: no label column.
  std::string label = {};
  std::uint64_t max_bytes = 0;  ///< limit of the unpacked text and of the values; 0: the default
};

struct CsvTable {
  std::vector<std::string> columns;  ///< names of the values' columns; empty without a header
  Tensor values;                     ///< [rows, columns]
  /// [rows]; undefined without a label column. int64 if the labels are classes: integers or texts
  /// (`classes`). The dtype of the values if all labels are numbers and one is not an integer (0.5,
  /// 1.0, 3e2, nan): these are regression targets.
  Tensor labels;
  /// The names of the classes if the labels are texts: label i is classes[i]. Sorted by bytes, at
  /// most 2^18.
  std::vector<std::string> classes;
};

/// Comma-separated numbers, plain or gzipped. Fields may be quoted; a doubled quote is one quote.
/// Lines may end in CR LF. Empty lines are skipped; all others must have the same number of fields.
/// A header has at most 2^20 columns.
BAREGRAD_API CsvTable read_csv(const std::string& path, const CsvOptions& options = {});
BAREGRAD_API CsvTable decode_csv(Bytes bytes, const CsvOptions& options = {});

/// An image as [channels, height, width]: uint8, or uint16 if the file has more than 8 bits per
/// sample. Samples are scaled to the full range of that dtype. The format is detected by content:
///   PGM and PPM  P2, P3, P5, P6 with any maxval up to 65535
///   PNG          all colour types and depths, interlaced or not; palettes become RGB, transparent
///                colours an alpha channel
/// At most 2^28 pixels.
BAREGRAD_API Tensor read_image(const std::string& path, std::uint64_t max_bytes = 0);
BAREGRAD_API Tensor decode_image(Bytes bytes, std::uint64_t max_bytes = 0);
BAREGRAD_API Tensor decode_pnm(Bytes bytes, std::uint64_t max_bytes = 0);
BAREGRAD_API Tensor decode_png(Bytes bytes, std::uint64_t max_bytes = 0);

}  // namespace baregrad::data

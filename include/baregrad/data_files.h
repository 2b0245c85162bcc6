// Readers of files with examples: IDX, CSV, images. Each reads a file, or decodes what is in memory
// already. A file that breaks its format's rules, or declares more than it can hold, is an IoError
// that says what is wrong and where; nothing of its declared size is allocated before that is
// known.
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

/// IDX, the format of MNIST, with any of its dtypes, plain or gzipped (seen from the contents).
BAREGRAD_API Tensor read_idx(const std::string& path);
BAREGRAD_API Tensor decode_idx(Bytes bytes);

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
};

struct CsvTable {
  std::vector<std::string> columns;  ///< names of the values' columns; empty without a header
  Tensor values;                     ///< [rows, columns]
  Tensor labels;                     ///< int64 [rows]; undefined without a label column
  /// Names of the classes when labels are not whole numbers: label i is classes[i], in the order of
  /// their bytes.
  std::vector<std::string> classes;
};

/// Comma-separated numbers, plain or gzipped. Fields may be quoted (a doubled quote stands for
/// one), lines may end in CR LF, empty lines are skipped; all others must have the same number of
/// fields.
BAREGRAD_API CsvTable read_csv(const std::string& path, const CsvOptions& options = {});
BAREGRAD_API CsvTable decode_csv(Bytes bytes, const CsvOptions& options = {});

/// An image as [channels, height, width], uint8, or uint16 where the file has more than 8 bits per
/// sample. Samples are scaled to the full range of that dtype. The kind is seen from the contents:
///   PGM and PPM  P2, P3, P5, P6 with any maxval up to 65535
///   PNG          all colour types and depths, interlaced or not; palettes become RGB, transparent
///                colours an alpha channel
/// At most 2^28 pixels.
BAREGRAD_API Tensor read_image(const std::string& path);
BAREGRAD_API Tensor decode_image(Bytes bytes);
BAREGRAD_API Tensor decode_pnm(Bytes bytes);
BAREGRAD_API Tensor decode_png(Bytes bytes);

}  // namespace baregrad::data

// Reading: the bytes of a file or of a buffer, and tensors on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "baregrad/tensor.h"

namespace baregrad::io {

struct Input {
  std::span<const std::uint8_t> bytes;
  std::string where;           // "load_npy: 'a.npy'", which opens every message
  std::shared_ptr<void> keep;  // a mapping that tensors may lie in; null: they must be copies
};

/// A private mapping of the whole file: what is written there never reaches the file. Throws
/// IoError when it cannot be read or is no regular file.
Input map_file(const std::string& path, const char* who);
Input buffer(std::span<const std::uint8_t> bytes, const std::string& label, const char* who);

/// Bytes of a declared shape, or nothing when no tensor can have it.
std::optional<std::size_t> declared_bytes(const Dims& shape, DType dtype);

/// How the elements of a tensor lie in a file.
struct Elements {
  Dims shape;
  DType dtype = DType::Float32;
  bool fortran_order = false;
  bool swapped = false;  // the other byte order

  /// The shape of the same bytes read row-major.
  Dims row_major() const;
};

/// A tensor of the elements at `offset`; the caller has checked that they lie inside of the input.
Tensor tensor_at(const Input& input, std::size_t offset, const Elements& elements);
/// A fresh tensor to read elements into, row-major; finish() makes it what they are.
Tensor room_for(const Elements& elements, const char* who);
Tensor finish(const Tensor& raw, const Elements& elements, const char* who);

/// Little-endian numbers of a format.
template <class T>
T load_little(const std::uint8_t* at) noexcept {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value | static_cast<T>(static_cast<T>(at[i]) << (8 * i)));
  }
  return value;
}

}  // namespace baregrad::io

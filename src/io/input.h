// Reading: the bytes of a file or of a buffer, and tensors on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "baregrad/io.h"
#include "baregrad/tensor.h"

namespace baregrad::io {

/// A regular file that is open for reading. size() is its length when it was opened.
class OpenFile {
 public:
  /// Throws IoError when it cannot be read or is not a regular file.
  OpenFile(const std::string& path, const char* who);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  std::size_t size() const noexcept { return size_; }
  int descriptor() const noexcept { return descriptor_; }
  /// Reads `count` bytes from `offset` on, which lie inside size(). Throws IoError when the file
  /// has become shorter.
  void read(void* out, std::size_t count, std::size_t offset) const;

 private:
  std::string path_;
  std::string who_;
  int descriptor_ = -1;
  std::size_t size_ = 0;
};

/// The source: a buffer, a mapping, or a file of which only the front is in memory.
struct Input {
  std::span<const std::uint8_t> bytes;  // all of it; of a file, the part that load_front() read
  std::string where;                    // "load_npy: 'a.npy'": opens every message
  // A mapping that tensors may point into; null: tensors are copies.
  std::shared_ptr<void> keep = {};
  std::size_t size = 0;                       // of the whole source, in memory or not
  std::shared_ptr<const OpenFile> file = {};  // the source of the rest; null: there is no rest
  Tensor front = {};                          // owns `bytes` of a file
  Device device = {};                         // where tensors go
};

/// The device that the options ask for. ValueError if it is not available.
Device device_for(const LoadOptions& options, const char* who);

/// A file to be read piece by piece, or a private mapping of all of it: writes to the mapping never
/// reach the file.
Input open_input(const std::string& path, const LoadOptions& options, const char* who);
Input buffer(std::span<const std::uint8_t> bytes, const std::string& label, const char* who);

/// Reads the first `count` bytes into memory. The caller has checked that there are so many.
void load_front(Input& input, std::size_t count);
/// A whole file as text.
std::string read_text(const std::string& path, const char* who);

/// The number of bytes of a declared shape. Empty when no tensor can have this shape.
std::optional<std::size_t> declared_bytes(const Dims& shape, DType dtype);

/// How the elements of a tensor lie in a file.
struct Elements {
  Dims shape;
  DType dtype = DType::Float32;
  bool fortran_order = false;
  bool swapped = false;  // the byte order is not the machine's

  /// The shape of the same bytes read row-major.
  Dims row_major() const;
};

/// A tensor of the elements at `offset`, on input.device; the caller has checked that they lie
/// inside of the input.
Tensor tensor_at(const Input& input, std::size_t offset, const Elements& elements);
/// A new row-major tensor to read elements into; finish() converts it to the declared order.
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

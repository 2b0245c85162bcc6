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

/// A regular file that is open for reading. Its length is that of the moment when it was opened.
class OpenFile {
 public:
  /// Throws IoError when it cannot be read or is no regular file.
  OpenFile(const std::string& path, const char* who);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  std::size_t size() const noexcept { return size_; }
  int descriptor() const noexcept { return descriptor_; }
  /// `count` bytes from `offset` on, which lie inside of size(). Throws IoError when the file has
  /// become shorter since.
  void read(void* out, std::size_t count, std::size_t offset) const;

 private:
  std::string path_;
  std::string who_;
  int descriptor_ = -1;
  std::size_t size_ = 0;
};

/// What is read: a buffer, a mapping, or a file of which only the front is in memory.
struct Input {
  std::span<const std::uint8_t> bytes;  // all of it; of a file what load_front() brought
  std::string where;                    // "load_npy: 'a.npy'", which opens every message
  std::shared_ptr<void> keep = {};      // a mapping that tensors may lie in; null: they are copies
  std::size_t size = 0;                 // of the whole, in memory or not
  std::shared_ptr<const OpenFile> file = {};  // what the rest is read from; null: there is no rest
  Tensor front = {};                          // where `bytes` of a file lie
};

/// A file to be read piece by piece, or a private mapping of the whole: what is written there never
/// reaches the file.
Input open_input(const std::string& path, const LoadOptions& options, const char* who);
Input buffer(std::span<const std::uint8_t> bytes, const std::string& label, const char* who);

/// Brings the first `count` bytes into memory; the caller has checked that there are so many.
void load_front(Input& input, std::size_t count);
/// A whole file as text.
std::string read_text(const std::string& path, const char* who);

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

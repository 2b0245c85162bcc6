// Writing: byte sinks, and the elements of a tensor in row-major order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "baregrad/io.h"
#include "baregrad/tensor.h"

namespace baregrad::io {

using Sink = std::function<void(std::string_view)>;

/// Writes all elements in row-major order: in one block if they are contiguous, else a few KB at a
/// time.
void write_elements(const Tensor& tensor, const Sink& sink);

/// Runs `write(sink)` into a file, whole or not at all, or into memory.
void write_file(const std::string& path, const char* who,
                const std::function<void(const Sink&)>& write);
Bytes write_bytes(const std::function<void(const Sink&)>& write);

/// Throws ValueError for an undefined tensor and for a repeated name.
void check_named(const NamedTensors& tensors, const char* who);

/// Appends a little-endian number.
template <class T>
void append_little(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i));
  }
}

}  // namespace baregrad::io

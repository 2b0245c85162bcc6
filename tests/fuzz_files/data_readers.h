// What the readers of src/data have in common as formats: they read and do not write.
#pragma once

#include <span>
#include <string_view>

#include "baregrad/error.h"
#include "baregrad/tensor.h"
#include "tests/fuzz_files/check.h"
#include "tests/fuzz_files/format.h"

namespace baregrad::fuzz {

/// Deflate holds at most this many bytes in one.
inline constexpr std::size_t kDeflate = 1032;

/// 1 when `decode` gives a tensor, whose bytes are all read; 0 when it refuses.
template <class Decode>
int try_decode(std::span<const std::uint8_t> file, std::size_t most_bytes, const Decode& decode) {
  Tensor decoded;
  try {
    const MemoryBound bound(most_bytes);
    decoded = decode(file);
  } catch (const IoError&) {
    return 0;
  }
  require_same(decoded, decoded);
  return 1;
}

inline Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

}  // namespace baregrad::fuzz

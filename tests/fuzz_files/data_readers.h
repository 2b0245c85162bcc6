// Common parts of the formats that src/data reads and does not write.
#pragma once

#include <span>
#include <string_view>

#include "baregrad/error.h"
#include "baregrad/tensor.h"
#include "tests/fuzz_files/check.h"
#include "tests/fuzz_files/format.h"

namespace baregrad::fuzz {

/// The greatest ratio of deflate.
inline constexpr std::size_t kDeflate = 1032;

/// 1 when `decode` returns a tensor, after reading all of its bytes; 0 when it refuses.
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

// The bitwise difference of two results of the same computation.
#pragma once

#include <cstdint>
#include <span>

namespace baregrad::lab {

struct BitDifference {
  std::int64_t elements = 0;  ///< the number of elements that differ
  std::int64_t max_ulps = 0;  ///< floats between them and one, at the most; a NaN against a number
                              ///< counts as all floats
};

/// Both have the same length.
BitDifference compare_bits(std::span<const float> result, std::span<const float> reference);

}  // namespace baregrad::lab

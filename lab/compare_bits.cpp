// Maps floats to integers in the order of their values.
#include "lab/compare_bits.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>

namespace baregrad::lab {
namespace {

/// Neighbouring floats map to neighbouring integers; both zeros map to 0.
std::int64_t place(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto magnitude = static_cast<std::int64_t>(bits & 0x7FFFFFFFU);
  return (bits >> 31) != 0 ? -magnitude : magnitude;
}

std::int64_t ulps_between(float x, float y) {
  if (std::isnan(x) != std::isnan(y)) return std::numeric_limits<std::uint32_t>::max();
  if (std::isnan(x)) return 0;
  return std::abs(place(x) - place(y));
}

}  // namespace

BitDifference compare_bits(std::span<const float> result, std::span<const float> reference) {
  BitDifference difference;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(result[i]) == std::bit_cast<std::uint32_t>(reference[i])) {
      continue;
    }
    ++difference.elements;
    difference.max_ulps = std::max(difference.max_ulps, ulps_between(result[i], reference[i]));
  }
  return difference;
}

}  // namespace baregrad::lab

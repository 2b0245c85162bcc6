// Loops about branches. They are compiled without vectors, and what must stay a branch, or must not
// become one, is said to the compiler.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace baregrad::lab {

/// The sum of those of at least `least`. One conditional jump per element, besides the loop's.
std::int64_t sum_if_branching(const std::int32_t* x, std::int64_t count, std::int32_t least);
/// The same without it: what does not count is added as zero.
std::int64_t sum_if_masked(const std::int32_t* x, std::int64_t count, std::int32_t least);

/// A dot product that does `unrolled` elements per turn of the loop and adds them to `sums`
/// variables in turn. Counts are multiples of 32.
struct Dot {
  std::string_view name;  ///< "8x1"
  int unrolled;
  int sums;
  float (*run)(const float* x, const float* y, std::int64_t count);
};
/// Unrolled 1, 2, 4, ..., 32 times, with one sum and with as many as elements per turn.
std::span<const Dot> dots();

}  // namespace baregrad::lab

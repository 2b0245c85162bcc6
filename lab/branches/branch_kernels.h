// Loops with and without branches. They are compiled without vectors, and inline assembly keeps or
// prevents the branches.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace baregrad::lab {

/// The sum of the elements that are at least `least`, with one conditional jump per element.
std::int64_t sum_if_branching(const std::int32_t* x, std::int64_t count, std::int32_t least);
/// The same without the jump: smaller elements are added as zero.
std::int64_t sum_if_masked(const std::int32_t* x, std::int64_t count, std::int32_t least);

/// A dot product with `unrolled` elements per iteration, added to `sums` variables in turn. Counts
/// are multiples of 32.
struct Dot {
  std::string_view name;  ///< "8x1"
  int unrolled;
  int sums;
  float (*run)(const float* x, const float* y, std::int64_t count);
};
/// Unrolled 1, 2, 4, ..., 32 times, with one sum and with as many sums as elements per iteration.
std::span<const Dot> dots();

}  // namespace baregrad::lab

// Compiled with special flags, see CMakeLists.txt.
#include "lab/branches/branch_kernels.h"

#include <array>
#include <cstddef>
#include <utility>

namespace baregrad::lab {
namespace {

template <int Unrolled, int Sums>
float dot(const float* x, const float* y, std::int64_t count) {
  std::array<float, Sums> sums{};
  const float* const end = x + count;
  for (; x != end; x += Unrolled, y += Unrolled) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { ((sums[I % Sums] += x[I] * y[I]), ...); }
    (std::make_index_sequence<Unrolled>());
  }
  float sum = 0;
  for (const float each : sums) sum += each;
  return sum;
}

constexpr Dot kDots[] = {
    {"1x1", 1, 1, dot<1, 1>},       {"2x1", 2, 1, dot<2, 1>},       {"4x1", 4, 1, dot<4, 1>},
    {"8x1", 8, 1, dot<8, 1>},       {"16x1", 16, 1, dot<16, 1>},    {"32x1", 32, 1, dot<32, 1>},
    {"2x2", 2, 2, dot<2, 2>},       {"4x4", 4, 4, dot<4, 4>},       {"8x8", 8, 8, dot<8, 8>},
    {"16x16", 16, 16, dot<16, 16>}, {"32x32", 32, 32, dot<32, 32>},
};

}  // namespace

std::int64_t sum_if_branching(const std::int32_t* x, std::int64_t count, std::int32_t least) {
  std::int64_t sum = 0;
  for (const std::int32_t* const end = x + count; x != end; ++x) {
    if (*x >= least) {
      // The compiler cannot execute this unconditionally, so it must keep the jump.
      asm volatile("" : "+r"(sum));
      sum += *x;
    }
  }
  return sum;
}

std::int64_t sum_if_masked(const std::int32_t* x, std::int64_t count, std::int32_t least) {
  std::int64_t sum = 0;
  for (const std::int32_t* const end = x + count; x != end; ++x) {
    std::int64_t mask = -static_cast<std::int64_t>(*x >= least);
    asm("" : "+r"(mask));  // may be any value for the compiler, so it cannot become a jump
    sum += *x & mask;
  }
  return sum;
}

std::span<const Dot> dots() { return kDots; }

}  // namespace baregrad::lab

// Rung 5: the loops of the rung below with vectors written out, as wide as this processor has them
// (four, eight or sixteen floats), and fused multiply-adds. The compiler alone must build for the
// oldest x86-64: four floats, and a multiply and an add for each.
#include "lab/ladder/vector.h"

namespace baregrad::lab::BAREGRAD_LADDER_ISA {
namespace {

constexpr std::int64_t kDepth = 128;
constexpr std::int64_t kWidth = 512;

/// row[j ... right) += four numbers of a times four rows of b, a vector of columns at a time;
/// returns where it stopped.
template <class V>
std::int64_t add_four_rows(std::int64_t n, std::int64_t j, std::int64_t right, const float* a,
                           const float* b, float* row) {
  constexpr std::int64_t kStep = sizeof(V) / sizeof(float);
  const float a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
  for (; j + kStep <= right; j += kStep) {
    V sum = load<V>(row + j);
    sum += a0 * load<V>(b + j);
    sum += a1 * load<V>(b + n + j);
    sum += a2 * load<V>(b + 2 * n + j);
    sum += a3 * load<V>(b + 3 * n + j);
    store(sum, row + j);
  }
  return j;
}

void add_tile(std::int64_t n, std::int64_t left, std::int64_t right, std::int64_t depth,
              const float* a, const float* b, float* row) {
  std::int64_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    std::int64_t j = add_four_rows<Vec>(n, left, right, a + k, b + k * n, row);
    j = add_four_rows<Quad>(n, j, right, a + k, b + k * n, row);
    add_four_rows<float>(n, j, right, a + k, b + k * n, row);
  }
  for (; k < depth; ++k) {
    for (std::int64_t j = left; j < right; ++j) row[j] += a[k] * b[k * n + j];
  }
}

}  // namespace

void multiply_simd(std::int64_t n, const float* a, const float* b, float* c) {
  __builtin_memset(c, 0, static_cast<std::size_t>(n * n) * sizeof(float));
  for (std::int64_t left = 0; left < n; left += kWidth) {
    const std::int64_t right = left + kWidth < n ? left + kWidth : n;
    for (std::int64_t top = 0; top < n; top += kDepth) {
      const std::int64_t depth = n - top < kDepth ? n - top : kDepth;
      for (std::int64_t i = 0; i < n; ++i) {
        add_tile(n, left, right, depth, a + i * n + top, b + top * n, c + i * n);
      }
    }
  }
}

}  // namespace baregrad::lab::BAREGRAD_LADDER_ISA

// Rung 4: four steps of k at once. Each element of c is loaded and stored once for four
// multiply-adds, where the rung below does so for every one.
#include <algorithm>

#include "lab/ladder/multiply.h"

namespace baregrad::lab {
namespace {

constexpr std::int64_t kDepth = 128;
constexpr std::int64_t kWidth = 512;

/// row[left ... right) += the product of `depth` numbers of a and as many rows of b.
void add_rows(std::int64_t n, std::int64_t left, std::int64_t right, std::int64_t depth,
              const float* a, const float* b, float* row) {
  std::int64_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    const float a0 = a[k], a1 = a[k + 1], a2 = a[k + 2], a3 = a[k + 3];
    const float *b0 = b + k * n, *b1 = b0 + n, *b2 = b1 + n, *b3 = b2 + n;
    for (std::int64_t j = left; j < right; ++j) {
      row[j] += a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j];
    }
  }
  for (; k < depth; ++k) {
    for (std::int64_t j = left; j < right; ++j) row[j] += a[k] * b[k * n + j];
  }
}

}  // namespace

void multiply_unrolled(std::int64_t n, const float* a, const float* b, float* c) {
  std::fill_n(c, n * n, 0.0f);
  for (std::int64_t left = 0; left < n; left += kWidth) {
    const std::int64_t right = std::min(left + kWidth, n);
    for (std::int64_t top = 0; top < n; top += kDepth) {
      const std::int64_t depth = std::min(kDepth, n - top);
      for (std::int64_t i = 0; i < n; ++i) {
        add_rows(n, left, right, depth, a + i * n + top, b + top * n, c + i * n);
      }
    }
  }
}

}  // namespace baregrad::lab

// Rung 3: the reordered loops over one tile of b at a time. The rung below reads all of b again for
// every row of c; here a tile of b that fits into the L2 cache serves all rows before the next one
// is fetched, and the piece of a row of c that it is added to stays in L1.
#include <algorithm>

#include "lab/ladder/multiply.h"

namespace baregrad::lab {
namespace {

constexpr std::int64_t kDepth = 128;  // rows of b in a tile
constexpr std::int64_t kWidth = 512;  // its columns: 256 KiB in all

}  // namespace

void multiply_tiled(std::int64_t n, const float* a, const float* b, float* c) {
  std::fill_n(c, n * n, 0.0f);
  for (std::int64_t left = 0; left < n; left += kWidth) {
    const std::int64_t right = std::min(left + kWidth, n);
    for (std::int64_t top = 0; top < n; top += kDepth) {
      const std::int64_t bottom = std::min(top + kDepth, n);
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t k = top; k < bottom; ++k) {
          const float factor = a[i * n + k];
          for (std::int64_t j = left; j < right; ++j) c[i * n + j] += factor * b[k * n + j];
        }
      }
    }
  }
}

}  // namespace baregrad::lab

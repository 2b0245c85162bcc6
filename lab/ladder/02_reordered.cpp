// Rung 2: the same multiply-adds with the two inner loops exchanged. b and c are now read along
// their rows, every number of a cache line is used, and no sum waits for the one before it: the
// compiler may take four columns at once.
#include "lab/ladder/multiply.h"

namespace baregrad::lab {

void multiply_reordered(std::int64_t n, const float* a, const float* b, float* c) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) c[i * n + j] = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      const float factor = a[i * n + k];
      for (std::int64_t j = 0; j < n; ++j) c[i * n + j] += factor * b[k * n + j];
    }
  }
}

}  // namespace baregrad::lab

// Rung 1: three loops, as in the textbook. One multiply-add at a time, each waiting for the one
// before it, and b is read down its columns: a new cache line for every number.
#include "lab/ladder/multiply.h"

namespace baregrad::lab {

void multiply_naive(std::int64_t n, const float* a, const float* b, float* c) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
      c[i * n + j] = sum;
    }
  }
}

}  // namespace baregrad::lab

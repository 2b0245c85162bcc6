// Threads by OpenMP: one line; the runtime keeps its threads from one product to the next.
#include "lab/ladder/multiply.h"
#include "lab/ladder/threads.h"

namespace baregrad::lab {

void multiply_openmp(std::int64_t n, const float* a, const float* b, float* c, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int t = 0; t < threads; ++t) {
    const RowShare rows = row_share(n, t, threads);
    multiply_packed_rows(n, rows.begin, rows.end, a, b, c);
  }
}

}  // namespace baregrad::lab

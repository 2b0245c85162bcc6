// Threads of the engine's pool: they are there already, and what a share throws reaches the caller.
#include "lab/ladder/multiply.h"
#include "lab/ladder/threads.h"
#include "parallel/parallel_for.h"

namespace baregrad::lab {

void multiply_pool(std::int64_t n, const float* a, const float* b, float* c, int threads) {
  parallel::parallel_for(threads, 1, [&](std::int64_t share, std::int64_t) {
    const RowShare rows = row_share(n, static_cast<int>(share), threads);
    multiply_packed_rows(n, rows.begin, rows.end, a, b, c);
  });
}

}  // namespace baregrad::lab

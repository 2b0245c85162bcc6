// Three ways to run the packed rung on several threads. Each thread multiplies a share of the rows
// and packs b itself, so that threads synchronise only at the end.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace baregrad::lab {

struct ThreadedRung {
  std::string_view name;   ///< "pthreads"
  std::string_view title;  ///< "threads created for every product"
  std::string_view file;   ///< "threads_pthreads.cpp"
  void (*multiply)(std::int64_t n, const float* a, const float* b, float* c, int threads);
};

std::span<const ThreadedRung> threaded_rungs();

/// Rows [begin, end) of `share` out of `shares`. Shares differ by at most one row.
struct RowShare {
  std::int64_t begin;
  std::int64_t end;
};
inline RowShare row_share(std::int64_t n, int share, int shares) {
  return {n * share / shares, n * (share + 1) / shares};
}

void multiply_pthreads(std::int64_t n, const float* a, const float* b, float* c, int threads);
void multiply_openmp(std::int64_t n, const float* a, const float* b, float* c, int threads);
/// Uses as many threads as the engine; `threads` is the number of shares.
void multiply_pool(std::int64_t n, const float* a, const float* b, float* c, int threads);

}  // namespace baregrad::lab

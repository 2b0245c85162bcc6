// Rung 6: a block of c is kept in registers while k runs. A vector of b that was loaded serves all
// rows of the block, a number of a all its columns, and c leaves the registers once per kDepth
// multiply-adds: the arithmetic no longer waits for loads and stores.
#include "lab/ladder/vector.h"

namespace baregrad::lab::BAREGRAD_LADDER_ISA {
namespace {

constexpr std::int64_t kDepth = 256;  // steps of k before c is written: 32 KiB of b with AVX-512

/// kRows rows and kVecs vectors of c += kRows rows of a, `depth` long, times as many rows of b.
template <int kRows, class V, int kVecs>
void add_block(std::int64_t n, std::int64_t depth, const float* a, const float* b, float* c) {
  constexpr std::int64_t kStep = sizeof(V) / sizeof(float);
  V sum[kRows][kVecs] = {};
  for (std::int64_t k = 0; k < depth; ++k) {
    V of_b[kVecs];
#pragma GCC unroll 2
    for (int v = 0; v < kVecs; ++v) of_b[v] = load<V>(b + k * n + v * kStep);
#pragma GCC unroll 14
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v) sum[i][v] += a[i * n + k] * of_b[v];
    }
  }
#pragma GCC unroll 14
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kVecs; ++v) {
      float* at = c + i * n + v * kStep;
      store(load<V>(at) + sum[i][v], at);
    }
  }
}

/// The same for `rows` rows: blocks of kRows, then of half as many, down to single rows.
template <int kRows, class V, int kVecs>
void add_rows(std::int64_t n, std::int64_t rows, std::int64_t depth, const float* a, const float* b,
              float* c) {
  for (; rows >= kRows; rows -= kRows, a += kRows * n, c += kRows * n) {
    add_block<kRows, V, kVecs>(n, depth, a, b, c);
  }
  if constexpr (kRows > 1) add_rows<kRows / 2, V, kVecs>(n, rows, depth, a, b, c);
}

}  // namespace

void multiply_register_blocked(std::int64_t n, const float* a, const float* b, float* c) {
  __builtin_memset(c, 0, static_cast<std::size_t>(n * n) * sizeof(float));
  for (std::int64_t top = 0; top < n; top += kDepth, a += kDepth, b += kDepth * n) {
    const std::int64_t depth = n - top < kDepth ? n - top : kDepth;
    std::int64_t j = 0;
    for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
      add_rows<kBlockRows, Vec, 2>(n, n, depth, a, b + j, c + j);
    }
    for (; j + 4 <= n; j += 4) add_rows<kBlockRows, Quad, 1>(n, n, depth, a, b + j, c + j);
    for (; j < n; ++j) add_rows<kBlockRows, float, 1>(n, n, depth, a, b + j, c + j);
  }
}

}  // namespace baregrad::lab::BAREGRAD_LADDER_ISA

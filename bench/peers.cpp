// Plain loops over elements.
#include "bench/peers.h"

#include <algorithm>
#include <cmath>
#include <new>

namespace baregrad::bench::peers {
namespace {

/// One loop per body: the output at i depends only on i.
template <class Body>
Floats fill(std::int64_t n, int threads, Body body) {
  Floats result = allocate(n);
  float* out = result.get();
#pragma omp parallel for simd num_threads(threads) schedule(static)
  for (std::int64_t i = 0; i < n; ++i) out[i] = body(i);
  return result;
}

}  // namespace

Floats allocate(std::int64_t n) {
  Floats block(static_cast<float*>(std::malloc(static_cast<std::size_t>(n) * sizeof(float))));
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

Floats add(const float* x, const float* y, std::int64_t n, int threads) {
  return fill(n, threads, [x, y](std::int64_t i) { return x[i] + y[i]; });
}

Floats multiply(const float* x, const float* y, std::int64_t n, int threads) {
  return fill(n, threads, [x, y](std::int64_t i) { return x[i] * y[i]; });
}

Floats relu(const float* x, std::int64_t n, int threads) {
  return fill(n, threads, [x](std::int64_t i) { return x[i] > 0.0f ? x[i] : 0.0f; });
}

Floats add_outer(const float* x, const float* y, std::int64_t rows, std::int64_t cols,
                 int threads) {
  Floats result = allocate(rows * cols);
  float* out = result.get();
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t i = 0; i < rows; ++i) {
    const float left = x[i];
#pragma omp simd
    for (std::int64_t j = 0; j < cols; ++j) out[i * cols + j] = left + y[j];
  }
  return result;
}

Floats add_transposed(const float* x, const float* y, std::int64_t n, int threads) {
  // A tile of x stays in L1 while its columns are read.
  constexpr std::int64_t kTile = 16;
  Floats result = allocate(n * n);
  float* out = result.get();
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t i0 = 0; i0 < n; i0 += kTile) {
    const std::int64_t i1 = std::min(i0 + kTile, n);
    for (std::int64_t j0 = 0; j0 < n; j0 += kTile) {
      const std::int64_t j1 = std::min(j0 + kTile, n);
      for (std::int64_t i = i0; i < i1; ++i) {
#pragma omp simd
        for (std::int64_t j = j0; j < j1; ++j) out[i * n + j] = x[j * n + i] + y[i * n + j];
      }
    }
  }
  return result;
}

Floats add_every_other(const float* x, const float* y, std::int64_t n, int threads) {
  return fill(n, threads, [x, y](std::int64_t i) { return x[2 * i] + y[i]; });
}

Floats exp(const float* x, std::int64_t n, int threads) {
  return fill(n, threads, [x](std::int64_t i) { return std::exp(x[i]); });
}

Floats log(const float* x, std::int64_t n, int threads) {
  return fill(n, threads, [x](std::int64_t i) { return std::log(x[i]); });
}

Floats tanh(const float* x, std::int64_t n, int threads) {
  return fill(n, threads, [x](std::int64_t i) { return std::tanh(x[i]); });
}

Floats sigmoid(const float* x, std::int64_t n, int threads) {
  return fill(n, threads, [x](std::int64_t i) { return 1.0f / (1.0f + std::exp(-x[i])); });
}

Floats gelu(const float* x, std::int64_t n, int threads) {
  return fill(n, threads,
              [x](std::int64_t i) { return 0.5f * x[i] * (1.0f + std::erf(x[i] * 0.70710678f)); });
}

Floats erf(const float* x, std::int64_t n, int threads) {
  return fill(n, threads, [x](std::int64_t i) { return std::erf(x[i]); });
}

}  // namespace baregrad::bench::peers

// Plain loops that reduce.
#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/peers.h"

namespace baregrad::bench::peers {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

float sum_run(const float* x, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

float max_run(const float* x, std::int64_t n) {
  float best = kLowest;
#pragma omp simd reduction(max : best)
  for (std::int64_t i = 0; i < n; ++i) best = std::max(best, x[i]);
  return best;
}

float squares_run(const float* x, std::int64_t n, float mean) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += (x[i] - mean) * (x[i] - mean);
  return sum;
}

float reduce_run(Reduction op, const float* x, std::int64_t n) {
  const auto count = static_cast<float>(n);
  switch (op) {
    case Reduction::Sum:
      return sum_run(x, n);
    case Reduction::Max:
      return max_run(x, n);
    case Reduction::Mean:
      return sum_run(x, n) / count;
    case Reduction::Var:
      break;
  }
  return squares_run(x, n, sum_run(x, n) / count) / count;
}

float sum_all(const float* x, std::int64_t n, int threads) {
  float sum = 0;
#pragma omp parallel for simd num_threads(threads) schedule(static) reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

float max_all(const float* x, std::int64_t n, int threads) {
  float best = kLowest;
#pragma omp parallel for simd num_threads(threads) schedule(static) reduction(max : best)
  for (std::int64_t i = 0; i < n; ++i) best = std::max(best, x[i]);
  return best;
}

float squares_all(const float* x, std::int64_t n, float mean, int threads) {
  float sum = 0;
#pragma omp parallel for simd num_threads(threads) schedule(static) reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += (x[i] - mean) * (x[i] - mean);
  return sum;
}

/// The columns [begin, end) of out, row by row.
void reduce_columns(Reduction op, const float* x, std::int64_t rows, std::int64_t cols,
                    std::int64_t begin, std::int64_t end, float* out) {
  const bool is_max = op == Reduction::Max;
  std::fill(out + begin, out + end, is_max ? kLowest : 0.0f);
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * cols;
    if (is_max) {
#pragma omp simd
      for (std::int64_t c = begin; c < end; ++c) out[c] = std::max(out[c], row[c]);
    } else {
#pragma omp simd
      for (std::int64_t c = begin; c < end; ++c) out[c] += row[c];
    }
  }
  if (op == Reduction::Sum || is_max) return;
  for (std::int64_t c = begin; c < end; ++c) out[c] /= static_cast<float>(rows);
  if (op == Reduction::Mean) return;
  const Floats squares = allocate(end - begin);
  float* sum = squares.get();
  std::fill_n(sum, end - begin, 0.0f);
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * cols;
#pragma omp simd
    for (std::int64_t c = begin; c < end; ++c) {
      sum[c - begin] += (row[c] - out[c]) * (row[c] - out[c]);
    }
  }
  for (std::int64_t c = begin; c < end; ++c) out[c] = sum[c - begin] / static_cast<float>(rows);
}

}  // namespace

Floats reduce_all(Reduction op, const float* x, std::int64_t rows, std::int64_t cols, int threads) {
  const std::int64_t n = rows * cols;
  const auto count = static_cast<float>(n);
  Floats result = allocate(1);
  switch (op) {
    case Reduction::Sum:
      result[0] = sum_all(x, n, threads);
      break;
    case Reduction::Max:
      result[0] = max_all(x, n, threads);
      break;
    case Reduction::Mean:
      result[0] = sum_all(x, n, threads) / count;
      break;
    case Reduction::Var:
      result[0] = squares_all(x, n, sum_all(x, n, threads) / count, threads) / count;
      break;
  }
  return result;
}

Floats reduce_axis0(Reduction op, const float* x, std::int64_t rows, std::int64_t cols,
                    int threads) {
  Floats result = allocate(cols);
  float* out = result.get();
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int part = 0; part < threads; ++part) {
    reduce_columns(op, x, rows, cols, cols * part / threads, cols * (part + 1) / threads, out);
  }
  return result;
}

Floats reduce_axis1(Reduction op, const float* x, std::int64_t rows, std::int64_t cols,
                    int threads) {
  Floats result = allocate(rows);
  float* out = result.get();
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t r = 0; r < rows; ++r) out[r] = reduce_run(op, x + r * cols, cols);
  return result;
}

Floats softmax(const float* x, std::int64_t rows, std::int64_t cols, int threads) {
  Floats result = allocate(rows * cols);
  float* all = result.get();
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * cols;
    float* out = all + r * cols;
    const float most = max_run(row, cols);
    for (std::int64_t c = 0; c < cols; ++c) out[c] = std::exp(row[c] - most);
    const float scale = 1.0f / sum_run(out, cols);
#pragma omp simd
    for (std::int64_t c = 0; c < cols; ++c) out[c] *= scale;
  }
  return result;
}

}  // namespace baregrad::bench::peers

// Kernels of normalisation and cross-entropy over contiguous rows.
#pragma once

#include <cstdint>

#include "backends/cpu/abi.h"

namespace baregrad::kernels {

/// Of one compute type T, f32 or f64. `x`, `g`, `y`, `dx` are rows x n, contiguous unless a stride
/// is given; n >= 1. Sums are computed so that every result is exact to a few roundings.
struct NormFns {
  /// y = (x - mean) * rstd * weight + bias; stats[2 r] = mean, stats[2 r + 1] = rstd. weight and
  /// bias: n each, or null (no bias without a weight).
  void (*layer)(const void* x, std::int64_t rows, std::int64_t n, const void* weight,
                const void* bias, double eps, void* y, void* stats) = nullptr;
  /// y = x * rstd * weight; stats[r] = rstd.
  void (*rms)(const void* x, std::int64_t rows, std::int64_t n, const void* weight, double eps,
              void* y, void* stats) = nullptr;
  /// dx from g = dy; dweight and dbias (n each, of type T) are added to. Each of the three may be
  /// null; dbias is null where dweight is.
  void (*layer_backward)(const void* g, const void* x, const void* stats, const void* weight,
                         std::int64_t rows, std::int64_t n, void* dx, void* dweight,
                         void* dbias) = nullptr;
  void (*rms_backward)(const void* g, const void* x, const void* stats, const void* weight,
                       std::int64_t rows, std::int64_t n, void* dx, void* dweight,
                       void* dbias) = nullptr;

  /// y = (x - mean) * scale + shift; the three have an element per row, or per column.
  void (*affine)(const void* x, std::int64_t rows, std::int64_t n, const void* mean,
                 const void* scale, const void* shift, bool per_row, void* y) = nullptr;
  /// sums[0] += sum of g, sums[1] += sum of g * (x - mean) over a run.
  void (*run_sums)(const void* g, const void* x, std::int64_t n, double mean,
                   double* sums) = nullptr;
  /// The same for each column: sums[0..n) and sums[n..2n).
  void (*column_sums)(const void* g, const void* x, std::int64_t rows, std::int64_t row_stride,
                      std::int64_t n, const void* mean, double* sums) = nullptr;
  /// dx = a * g + b * (x - mean) + c; all four per row, or per column.
  void (*affine_backward)(const void* g, const void* x, std::int64_t rows, std::int64_t n,
                          const void* a, const void* b, const void* c, const void* mean,
                          bool per_row, void* dx) = nullptr;

  /// out[0] = greatest of the row, out[1] = sum of exp(x - greatest). NaN where there is NaN or
  /// +inf, or nothing but -inf.
  void (*exp_sum)(const void* x, std::int64_t n, double* out) = nullptr;
  /// out = exp(x - max) * scale
  void (*exp_scaled)(const void* x, std::int64_t n, double max, double scale, void* out) = nullptr;
};

struct NormKernels {
  NormFns f32;
  NormFns f64;

  const NormFns& of(DType compute) const noexcept { return compute == DType::Float64 ? f64 : f32; }
};

}  // namespace baregrad::kernels

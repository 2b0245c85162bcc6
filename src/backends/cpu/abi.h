// The contract of a kernel: plain-data views in, plain memory out. See docs/kernel_contract.md.
//
// For every kernel:
//  - it reads and writes the elements it was given and not a byte more (no padding may be assumed);
//  - pointers are aligned to the element size, to nothing wider; walkers stage what is not;
//  - outputs do not overlap inputs, except that an elementwise output may be exactly an input;
//  - it keeps no state. What can fail was checked before. Kernels of runs and tiles neither
//  allocate
//    nor throw; those of whole calls (CallFn) may take scratch memory before their first write;
//  - it does not know threads: walkers split the work, by shape alone.
#pragma once

#include <cstdint>

#include "backends/call.h"
#include "backends/cpu/gemm/kernels.h"
#include "baregrad/dtype.h"

namespace baregrad::kernels {

/// The greatest number of inputs of an elementwise op or a product.
inline constexpr int kMaxInputs = 3;

/// n elements of one compute type, contiguous in and out. `in[k]` may equal `out`.
/// Where bit k of `repeated` is set, in[k] is one element that stands for all n, and lies apart
/// from `out`. Kernels that take that are those of takes_repeated (elementwise.h); never all
/// inputs. Predicates and comparisons write bool bytes (0 or 1); `where` reads its condition as
/// bool bytes. params: the op's numbers (slope, alpha, ...), at most two, else null.
using ElementwiseFn = void (*)(const void* const* in, void* out, std::int64_t n,
                               const double* params, std::uint32_t repeated);

/// n elements converted, contiguous in and out, not overlapping unless the item sizes are equal.
using CastFn = void (*)(const void* in, void* out, std::int64_t n);

/// Moving elements of one size between places a byte stride apart and contiguous ones. Nothing need
/// be aligned; gaps between the first and the last element read may be read too.
struct StageKernels {
  /// dst[i] = *value
  void (*fill)(char* dst, const char* value, std::int64_t n) = nullptr;
  /// dst[i] = src[i * stride]
  void (*gather)(char* dst, const char* src, std::int64_t stride, std::int64_t n) = nullptr;
  /// dst[i * stride] = src[i]
  void (*scatter)(char* dst, std::int64_t stride, const char* src, std::int64_t n) = nullptr;
  /// dst[r * cols + c] = src[r * row_stride + c * col_stride], for |row_stride| < |col_stride|
  void (*transpose)(char* dst, const char* src, std::int64_t rows, std::int64_t row_stride,
                    std::int64_t cols, std::int64_t col_stride) = nullptr;
};

/// A reduction of a block of one compute type, rows x cols with contiguous columns, into
/// accumulators of type `acc`.
/// `shift` is null but for var and std: there the accumulated quantity is (x - shift)^2, one shift
/// per accumulator.
struct ReduceKernel {
  DType acc = DType::Float64;
  /// acc[i] = the identity of the reduction.
  void (*init)(void* acc, std::int64_t n) = nullptr;
  /// acc[r] = acc[r] (+) x[r * row_stride] (+) ... (+) x[r * row_stride + cols - 1] for r < rows
  void (*inner)(const void* x, std::int64_t rows, std::int64_t row_stride, std::int64_t cols,
                void* acc, const double* shift) = nullptr;
  /// acc[c] = acc[c] (+) x[c] (+) ... (+) x[(rows - 1) * row_stride + c] for c < cols
  void (*outer)(const void* x, std::int64_t rows, std::int64_t row_stride, std::int64_t cols,
                void* acc, const double* shift) = nullptr;
  /// acc[i] = acc[i] (+) other[i]
  void (*combine)(void* acc, const void* other, std::int64_t n) = nullptr;
};

/// Position of the first best among n contiguous elements; the first NaN wins. n >= 1.
using ArgReduceFn = std::int64_t (*)(const void* x, std::int64_t n);

/// One row of softmax, log_softmax (n out) or logsumexp (1 out): n contiguous elements of f32 or
/// f64. n >= 1.
using RowFn = void (*)(const void* x, void* out, std::int64_t n);

/// An op with a kernel file of its own: the whole call. Which layouts it takes stands in
/// irregular.cpp; outputs have the shapes that its infer function gave.
using CallFn = void (*)(const Call& call);

/// out[r * cols + c] = exp(x[r * row_stride + c] - max[lane]) in f32 or f64, with no rounding
/// between the difference and exp. A lane is a row where `rows_are_lanes`, else a column.
using ExpBlockFn = void (*)(const void* x, std::int64_t rows, std::int64_t row_stride,
                            std::int64_t cols, const void* max, bool rows_are_lanes, void* out);

// Families with a table of their own, in the header of their name.
struct ConvKernels;  // conv.h
struct NormKernels;  // norm.h
struct StepKernels;  // step.h

/// What computes an op on this machine. Compute types are all but float16 and bfloat16, in which
/// only nextafter computes. A null entry means the op is not defined for that type.
struct KernelTable {
  ElementwiseFn elementwise[kNumOps][kNumDTypes] = {};
  ReduceKernel reduce[kNumOps][kNumDTypes] = {};
  ArgReduceFn argreduce[kNumOps][kNumDTypes] = {};
  RowFn row[kNumOps][kNumDTypes] = {};
  ExpBlockFn exp_block[kNumDTypes] = {};
  CastFn cast[kNumDTypes][kNumDTypes] = {};
  StageKernels stage[4] = {};  // by item size: 1, 2, 4, 8 bytes
  CallFn irregular[kNumOps] = {};
  GemmKernels gemm[kNumDTypes] = {};
  const ConvKernels* conv = nullptr;
  const NormKernels* norm = nullptr;
  const StepKernels* step = nullptr;
};

/// f16 and bf16 are computed in f32; every other dtype in itself.
constexpr DType compute_dtype(DType dtype) noexcept {
  return dtype == DType::Float16 || dtype == DType::BFloat16 ? DType::Float32 : dtype;
}

}  // namespace baregrad::kernels

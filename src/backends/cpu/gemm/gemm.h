// Matrix products: C = act(A B [+ C] [+ bias]) [+ residual].
//
// The room gemm/: loops, packing and block sizes know no instruction set; isa/ is compiled once per
// instruction set and knows one tile. No BLAS is linked.
#pragma once

#include <cstdint>
#include <span>

#include "baregrad/activation.h"
#include "baregrad/dtype.h"

namespace baregrad::kernels {

/// Strides count elements and may be negative or 0.
struct Matrix {
  const void* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 0;
};

struct GemmEpilogue {
  // With an aggregate, GCC would clear the whole GemmCall first, which takes 5 ns.
  GemmEpilogue() noexcept {}  // NOLINT(modernize-use-equals-default)

  const void* bias = nullptr;  ///< one number per column of C
  std::int64_t bias_stride = 0;
  const void* residual = nullptr;  ///< m x n
  std::int64_t residual_row_stride = 0;
  std::int64_t residual_col_stride = 0;
  Activation activation = Activation::None;
};

/// A is m x k, B is k x n, C is m x n; all of one dtype. No two elements of C may share memory, and
/// C overlaps nothing else (a residual may be exactly C).
struct GemmCall {
  DType dtype = DType::Float32;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  Matrix a;
  Matrix b;
  void* c = nullptr;
  std::int64_t c_row_stride = 0;
  std::int64_t c_col_stride = 0;
  bool accumulate = false;
  GemmEpilogue epilogue;

  /// With k = 0 nothing of A and B is read, and their strides may be anything: they become 0.
  void forget_unread_operands() noexcept {
    if (k != 0) return;
    a = {a.data, 0, 0};
    b = {b.data, 0, 0};
  }
};

/// In this order: sum over k (0 for k = 0), + old C where `accumulate`, + bias, activation,
/// + residual, one rounding to the dtype. f16 and bf16 do all of it in f32. Integers wrap; bools
/// multiply by `and` and add by `or`. Zeros are not skipped: 0 * inf is NaN.
/// The order of the sum depends on the shape and strides of the call, and on nothing else.
/// Throws OutOfMemory before anything of C is written.
void gemm(const GemmCall& call);

/// One axis of a batch: its size, and the distance between neighbours for each operand (0 repeats).
struct GemmBatchAxis {
  std::int64_t size = 1;
  std::int64_t a_stride = 0;
  std::int64_t b_stride = 0;
  std::int64_t c_stride = 0;
  std::int64_t bias_stride = 0;
  std::int64_t residual_stride = 0;
};

/// The same product at every position of the batch; the last axis varies fastest. Products of a
/// batch do not share elements of C. When it throws OutOfMemory, some products of the batch may be
/// complete, the others are untouched.
void gemm_batched(const GemmCall& call, std::span<const GemmBatchAxis> batch);

}  // namespace baregrad::kernels

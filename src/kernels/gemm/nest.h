// The loops around the tiles, and what they need to know of a product.
#pragma once

#include <cstdint>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/kernels.h"

namespace baregrad::kernels {

/// How one product is computed: chosen once from dtype, shape and strides, then used for any
/// pointers.
struct GemmPlan {
  GemmCall call;  ///< transposed where that makes the rows of C contiguous
  const GemmKernels* kernels;
  std::int64_t bias_row;  ///< the transposed bias runs along rows
  std::int64_t bias_col;
  bool a_along_k;    ///< tiles read A[i * stride + p], else A[i + p * stride]
  bool pack_a;
  bool pack_b;
  bool finish;       ///< tiles go through GemmFinish, else straight into C
  bool use_dot;
};

/// Whole products, small or large, on this thread and others.
void run_nest(const GemmPlan& plan);
/// A product that packs and finishes nothing: row of tiles by row of tiles, on this thread, without
/// scratch. k > 0.
void run_rows(const GemmCall& call, const GemmKernels& kernels, bool a_along_k);
void run_dot(const GemmPlan& plan);

}  // namespace baregrad::kernels

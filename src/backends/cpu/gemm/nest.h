// The loops around the tiles, and what they need to know of a product.
#pragma once

#include <cstdint>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/kernels.h"

namespace baregrad::kernels {

/// How one product is computed: chosen once from dtype, shape and strides, then used for any
/// pointers.
struct GemmPlan {
  GemmCall call;
  const GemmKernels* kernels = nullptr;
  std::int64_t bias_row = 0;  ///< a transposed bias runs along rows
  std::int64_t bias_col = 0;
  bool transposed = false;  ///< `call` computes C^T = B^T A^T
  bool a_along_k = true;    ///< tiles read A[i * stride + p], else A[i + p * stride]
  bool pack_a = true;
  bool pack_b = true;
  bool finish = false;  ///< tiles are stored by GemmFinish, else directly
  bool dot = false;     ///< few rows of A with many columns of B, contiguous along k
};

/// Products of any size, on all threads.
void run_nest(const GemmPlan& plan);
/// Several products one after the other, and the distance between their operands.
struct GemmRun {
  std::int64_t count = 1;
  std::int64_t a_step = 0;
  std::int64_t b_step = 0;
  std::int64_t c_step = 0;
};
/// Products without packing and finishing, on this thread, without scratch: row of tiles by row of
/// tiles. k > 0.
void run_rows(const GemmCall& call, const GemmKernels& kernels, bool a_along_k,
              const GemmRun& products = {});
/// One row of tiles without packing and finishing: B is read along its rows, a few at a time.
void run_skinny(const GemmPlan& plan);
/// For a plan with `dot`.
void run_dot(const GemmPlan& plan);

}  // namespace baregrad::kernels

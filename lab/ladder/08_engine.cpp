// Rung 8: the engine's own product (src/backends/cpu/gemm), on one thread. What it has beyond the
// rung below: operands are packed only where that pays, tiles fetch c ahead, small products skip
// all of it, and every dtype, stride and epilogue goes the same way.
#include "backends/cpu/gemm/gemm.h"
#include "lab/ladder/multiply.h"
#include "parallel/serial.h"

namespace baregrad::lab {

void multiply_engine(std::int64_t n, const float* a, const float* b, float* c) {
  const parallel::SerialScope one_thread;
  kernels::GemmCall call;
  call.m = call.n = call.k = n;
  call.a = {a, n, 1};
  call.b = {b, n, 1};
  call.c = c;
  call.c_row_stride = n;
  call.c_col_stride = 1;
  kernels::gemm(call);
}

}  // namespace baregrad::lab

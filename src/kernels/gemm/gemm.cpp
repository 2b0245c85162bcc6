// The entry: which way a product is computed.
#include "kernels/gemm/gemm.h"

#include <utility>
#include <cstdlib>

#include "kernels/gemm/nest.h"
#include "kernels/table.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

/// Up to this size nothing is cut up, packed or shared with other threads.
constexpr std::int64_t kSmall = 64;

/// C^T = B^T A^T.
GemmCall transposed(const GemmCall& call) {
  GemmCall t = call;
  std::swap(t.m, t.n);
  t.a = {call.b.data, call.b.col_stride, call.b.row_stride};
  t.b = {call.a.data, call.a.col_stride, call.a.row_stride};
  std::swap(t.c_row_stride, t.c_col_stride);
  std::swap(t.epilogue.residual_row_stride, t.epilogue.residual_col_stride);
  return t;
}

GemmPlan make_plan(const GemmCall& call, const GemmKernels& kernels) {
  GemmPlan plan{call, &kernels, 0, call.epilogue.bias_stride, true, true, true, false, false};
  if (call.c_col_stride != 1 && call.n > 1 && (call.c_row_stride == 1 || call.m == 1)) {
    plan.call = transposed(call);
    std::swap(plan.bias_row, plan.bias_col);
  }
  GemmCall& c = plan.call;
  if (c.n == 1) c.c_col_stride = 1;
  const bool k_unit = c.a.col_stride == 1 || c.k <= 1;
  const bool row_unit = c.a.row_stride == 1 || c.m == 1;
  plan.a_along_k = k_unit || !row_unit;
  plan.finish = !kernels.direct || c.c_col_stride != 1 || c.k == 0 ||
                c.epilogue.bias != nullptr || c.epilogue.residual != nullptr ||
                c.epilogue.activation != Activation::None;
  const bool b_unit = c.b.col_stride == 1 || c.n == 1;
  plan.pack_b = !(kernels.direct && b_unit && (kernels.masked || c.n % kernels.lanes == 0) &&
                  (c.m <= 4 * kernels.mr || c.k * c.n <= (1 << 16)));
  plan.pack_a = !(kernels.direct && (k_unit ? (c.a.row_stride * kernels.item) % 2048 != 0 || c.n <= 256 : row_unit && c.n <= 256));
  if(getenv("PA")) plan.pack_a=true;
  if (getenv("ROWC") && plan.pack_a) plan.a_along_k = false;
  return plan;
}

/// The everyday case, found in a few comparisons: a product of ten by ten takes 30 ns.
bool is_plain_and_small(const GemmCall& c, const GemmKernels& kernels) {
  return kernels.direct && kernels.masked && c.a.col_stride == 1 && c.b.col_stride == 1 &&
         c.c_col_stride == 1 && c.epilogue.bias == nullptr && c.epilogue.residual == nullptr &&
         c.epilogue.activation == Activation::None && c.k > 0 && c.m <= kSmall && c.n <= kSmall &&
         c.k <= kSmall;
}

void run(const GemmPlan& plan) {
  if (!plan.pack_a && !plan.pack_b && !plan.finish &&
      plan.call.m * plan.call.n * plan.call.k <= kSmall * kSmall * kSmall) {
    run_rows(plan.call, *plan.kernels, plan.a_along_k);
  } else {
    run_nest(plan);
  }
}

}  // namespace

void gemm(const GemmCall& call) {
  if (call.m == 0 || call.n == 0) return;
  const GemmKernels& kernels = active_table().gemm[static_cast<int>(call.dtype)];
  if (is_plain_and_small(call, kernels)) return run_rows(call, kernels, true);
  run(make_plan(call, kernels));
}

}  // namespace baregrad::kernels

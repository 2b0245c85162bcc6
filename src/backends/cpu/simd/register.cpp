// Puts all kernels of this instruction set into the table.
#include "backends/cpu/simd/register.h"

#include "backends/cpu/simd/families.h"

namespace baregrad::kernels::HWY_NAMESPACE {

void register_kernels(KernelTable& table) {
  register_unary_float(table);
  register_unary_numeric(table);
  register_predicates(table);
  register_binary(table);
  register_comparisons(table);
  register_ternary(table);
  register_casts(table);
  register_reductions(table);
  register_rows(table);
  register_conv(table);
  register_norm(table);
  register_gemm_f32(table);
  register_gemm_f64(table);
  register_gemm_int(table);
  register_steps(table);
  register_staging(table);
}

}  // namespace baregrad::kernels::HWY_NAMESPACE

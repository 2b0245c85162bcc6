// f64 products.
#include "backends/cpu/gemm/isa/dot.h"
#include "backends/cpu/gemm/isa/register.h"

namespace baregrad::kernels::HWY_NAMESPACE {

void register_gemm_f64(KernelTable& table) {
  gemm_entry<double>(table) = gemm_kernels<double, double>(gemm_tiles<double>());
  gemm_entry<double>(table).dot = &dot<double>;
}

}  // namespace baregrad::kernels::HWY_NAMESPACE

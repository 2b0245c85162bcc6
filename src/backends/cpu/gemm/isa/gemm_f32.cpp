// f32 products; f16 and bf16 become f32 while they are packed.
#include "backends/cpu/gemm/isa/dot.h"
#include "backends/cpu/gemm/isa/register.h"

namespace baregrad::kernels::HWY_NAMESPACE {

void register_gemm_f32(KernelTable& table) {
  const GemmKernels tiles = gemm_tiles<float>();
  gemm_entry<float>(table) = gemm_kernels<float, float>(tiles);
  gemm_entry<float>(table).dot = &dot<float>;
  gemm_entry<Float16>(table) = gemm_kernels<Float16, float>(tiles);
  gemm_entry<BFloat16>(table) = gemm_kernels<BFloat16, float>(tiles);
}

}  // namespace baregrad::kernels::HWY_NAMESPACE

// Integer products, exact modulo 2^width, and logical ones of bools.
#include "backends/cpu/gemm/isa/register.h"

namespace baregrad::kernels::HWY_NAMESPACE {

void register_gemm_int(KernelTable& table) {
  const GemmKernels tiles16 = gemm_tiles<std::uint16_t>();
  gemm_entry<std::int8_t>(table) = gemm_kernels<std::int8_t, std::uint16_t>(tiles16);
  gemm_entry<std::uint8_t>(table) = gemm_kernels<std::uint8_t, std::uint16_t>(tiles16);
  gemm_entry<std::int16_t>(table) = gemm_kernels<std::int16_t, std::uint16_t>(tiles16);
  gemm_entry<std::uint16_t>(table) = gemm_kernels<std::uint16_t, std::uint16_t>(tiles16);
  const GemmKernels tiles32 = gemm_tiles<std::uint32_t>();
  gemm_entry<std::int32_t>(table) = gemm_kernels<std::int32_t, std::uint32_t>(tiles32);
  gemm_entry<std::uint32_t>(table) = gemm_kernels<std::uint32_t, std::uint32_t>(tiles32);
  const GemmKernels tiles64 = gemm_tiles<std::uint64_t>();
  gemm_entry<std::int64_t>(table) = gemm_kernels<std::int64_t, std::uint64_t>(tiles64);
  gemm_entry<std::uint64_t>(table) = gemm_kernels<std::uint64_t, std::uint64_t>(tiles64);
  gemm_entry<bool>(table) = gemm_kernels<bool, Logical>(gemm_tiles<Logical>());
}

}  // namespace baregrad::kernels::HWY_NAMESPACE

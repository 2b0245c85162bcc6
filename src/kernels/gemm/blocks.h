// Block sizes: the one place with numbers that tune.
#pragma once

#include <cstdint>

#include "kernels/gemm/kernels.h"

namespace baregrad::kernels {

/// The loops cut C into blocks of mb x nb, each summed over k in steps of kc; a task computes up to
/// mc x jc of a block. All in elements.
struct GemmBlocks {
  std::int64_t kc;
  std::int64_t mc;
  std::int64_t jc;
  std::int64_t mb;
  std::int64_t nb;
};

GemmBlocks gemm_blocks(const GemmKernels& kernels, std::int64_t m, std::int64_t n, std::int64_t k);

}  // namespace baregrad::kernels

// The plain matrix product, which all other implementations are tested against.
#pragma once

#include "backends/cpu/gemm/gemm.h"

namespace baregrad::kernels {

/// gemm() by three loops: floats are summed in double, integers wrap. One rounding at the end.
void reference_gemm(const GemmCall& call);

}  // namespace baregrad::kernels

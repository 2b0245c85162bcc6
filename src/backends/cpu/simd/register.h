// What each ISA's object library offers: one function that overrides table entries.
#pragma once

#include "backends/cpu/abi.h"

// The namespaces are Highway's HWY_NAMESPACE for the static target each library is compiled for.
namespace baregrad::kernels {
namespace N_SCALAR {
void register_kernels(KernelTable& table);
/// Moves of elements without arithmetic, which the reference table needs too.
void register_staging(KernelTable& table);
}  // namespace N_SCALAR
namespace N_SSE4 {
void register_kernels(KernelTable& table);
}
namespace N_AVX2 {
void register_kernels(KernelTable& table);
}
namespace N_AVX3 {
void register_kernels(KernelTable& table);
}
}  // namespace baregrad::kernels

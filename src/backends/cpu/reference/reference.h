// The plain, slow kernels, which all other kernels are tested against.
#pragma once

#include "backends/cpu/abi.h"

namespace baregrad::kernels {

/// Fills every entry that has a reference kernel.
void register_reference(KernelTable& table);

// Parts of register_reference.
void register_reference_reductions(KernelTable& table);
void register_reference_conv(KernelTable& table);
void register_reference_norm(KernelTable& table);
namespace reference {
void register_elementwise(KernelTable& table);
void register_casts(KernelTable& table);
void register_steps(KernelTable& table);
}  // namespace reference

}  // namespace baregrad::kernels

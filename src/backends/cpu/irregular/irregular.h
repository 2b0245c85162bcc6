// Kernels of the irregular ops, in baseline code: one for each row of ops.def, in the file that its
// name suggests (here, or in conv/, linalg/ and walkers/).
#pragma once

#include "backends/cpu/abi.h"

namespace baregrad::kernels {

/// Fills table.irregular.
void register_irregular(KernelTable& table);

/// Layouts of inputs that a kernel takes; others are copied first.
enum class Inputs : std::uint8_t {
  Any,      ///< it walks strides itself and stages what is not aligned
  Aligned,  ///< it walks strides itself
  Packed,   ///< row-major and aligned
};
/// What the kernel of an irregular op takes: packed, unless irregular.cpp says otherwise.
Inputs inputs_of(OpId op) noexcept;

#define BG_IRREGULAR(name, attrs, infer, results, doc) void name##_kernel(const Call& call);
#include "ops/ops.def"

}  // namespace baregrad::kernels

// The elementwise walker: splits an iteration into tiles that kernels can run on.
#pragma once

#include <span>

#include "backends/cpu/abi.h"

namespace baregrad::kernels {

struct ElementwiseCall {
  OpId op;
  DType compute;             ///< the type the kernel runs in
  std::span<const View> in;  ///< broadcast to out's shape: stride 0 where repeated
  View out;
  const double* params = nullptr;
};

/// Runs the op over any layout and dtype. An input may be exactly the output; the caller rules out
/// any other overlap.
void elementwise(const ElementwiseCall& call);

/// out = in, converted; any layouts, same shape.
void copy(const View& in, const View& out);

/// The type in which `op` computes operands of `dtype`: f32 for f16 and bf16, except for nextafter,
/// whose steps are those of the dtype itself.
constexpr DType elementwise_compute_dtype(OpId op, DType dtype) noexcept {
  return op == OpId::nextafter ? dtype : compute_dtype(dtype);
}

/// The types of input k and of the output of the kernel of `op` that computes in `compute`.
DType kernel_input_dtype(OpId op, int k, DType compute) noexcept;
DType kernel_output_dtype(OpId op, DType compute) noexcept;
/// Whether that kernel accepts inputs of one element (`repeated`, abi.h): kernels from floats to
/// floats with more than one input. All others read n elements of each input.
bool takes_repeated(OpId op, DType compute) noexcept;

}  // namespace baregrad::kernels

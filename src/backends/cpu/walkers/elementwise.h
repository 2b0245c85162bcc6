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

/// Runs the op over any layout and dtype. An input may be exactly the output; other overlap is the
/// caller's to exclude.
void elementwise(const ElementwiseCall& call);

/// out = in, converted; any layouts, same shape.
void copy(const View& in, const View& out);

/// What `op` computes in where its operands are of `dtype`: f16 and bf16 in f32, but nextafter,
/// whose steps are those of the dtype itself.
constexpr DType elementwise_compute_dtype(OpId op, DType dtype) noexcept {
  return op == OpId::nextafter ? dtype : compute_dtype(dtype);
}

/// What the kernel of `op` reads as its input k, and writes, when it computes in `compute`.
DType kernel_input_dtype(OpId op, int k, DType compute) noexcept;
DType kernel_output_dtype(OpId op, DType compute) noexcept;
/// Whether that kernel takes inputs that are one element (`repeated`, abi.h): floats to floats, of
/// more than one input. All others read n elements of each.
bool takes_repeated(OpId op, DType compute) noexcept;

}  // namespace baregrad::kernels

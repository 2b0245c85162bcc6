// Matrix products of tensors: from strided views to calls of gemm.
#pragma once

#include "backends/cpu/abi.h"

namespace baregrad::kernels {

/// What a product op is called with; all views of one dtype, aligned.
struct ProductCall {
  OpId op;
  std::span<const View> in;
  View out;
  Activation activation = Activation::None;  ///< linear
  bool accumulate = false;                   ///< matmul: added to what `out` holds
};

/// matmul: a, b. vecdot: x, y. linear: x, weight and maybe bias. addmm: what to add, a, b. Shapes
/// fit as infer_product checked; `out` overlaps no input.
void product(const ProductCall& call);

}  // namespace baregrad::kernels

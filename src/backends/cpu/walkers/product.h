// Matrix products of tensors: from strided views to calls of gemm.
#pragma once

#include "backends/cpu/abi.h"

namespace baregrad::kernels {

/// The operands of a product op; all views have one dtype and are aligned.
struct ProductCall {
  OpId op;
  std::span<const View> in;
  View out;
  Activation activation = Activation::None;  ///< linear
  bool accumulate = false;                   ///< matmul: added to `out`
};

/// matmul: a, b. vecdot: x, y. linear: x, weight and maybe bias. addmm: the addend, a, b. Shapes
/// were checked by infer_product; `out` overlaps no input.
void product(const ProductCall& call);

}  // namespace baregrad::kernels

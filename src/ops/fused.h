// What the fused ops share with their gradient rules.
#pragma once

#include "baregrad/ops_fused.h"

namespace baregrad {

/// softmax(q k^T scale + mask) in plain ops, whole: for what no fused kernel does. A row that looks
/// at nothing is zero. mask: bool, floats or undefined.
Tensor attention_weights(const Tensor& q, const Tensor& k, const Tensor& mask, bool causal,
                         double scale);

}  // namespace baregrad

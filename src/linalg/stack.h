// Tensors as stacks of matrices.
#pragma once

#include "baregrad/ops.h"
#include "baregrad/tensor.h"
#include "ops/decompositions.h"

namespace baregrad::linalg {

/// [...] as [..., 1, 1].
Tensor as_matrices(const Tensor& x);
/// From [..., n] to [..., 1, n], and to [..., n, 1].
Tensor as_rows(const Tensor& x);
Tensor as_columns(const Tensor& x);

/// One identity matrix of the size, dtype and device of the matrices of x.
Tensor identity_like(const Tensor& x);

}  // namespace baregrad::linalg

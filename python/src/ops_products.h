// PyTorch's products of tensors with a fixed number of dimensions: functions and methods.
#pragma once

#include "baregrad/tensor.h"

namespace baregrad::python {

/// Two matrices. ShapeError, which names matmul, for other numbers of dimensions; so below.
Tensor mm(const Tensor& a, const Tensor& b);
/// A matrix and a vector.
Tensor mv(const Tensor& a, const Tensor& b);
/// Two vectors.
Tensor dot(const Tensor& a, const Tensor& b);

}  // namespace baregrad::python

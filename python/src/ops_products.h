// PyTorch's products with a fixed number of dimensions, used by functions and methods.
#pragma once

#include "baregrad/tensor.h"

namespace baregrad::python {

/// Two matrices. Other numbers of dimensions are a ShapeError that names the function. The same
/// holds below.
Tensor mm(const Tensor& a, const Tensor& b);
/// A matrix and a vector.
Tensor mv(const Tensor& a, const Tensor& b);
/// Two vectors.
Tensor dot(const Tensor& a, const Tensor& b);

}  // namespace baregrad::python

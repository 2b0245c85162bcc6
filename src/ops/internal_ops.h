// Public functions for use inside others: what they refuse, they refuse in the caller's name.
#pragma once

#include "baregrad/tensor.h"

namespace baregrad {

/// broadcast_to.
Tensor repeated_to(const Tensor& x, const Dims& shape, const char* who);
/// astype; the tensor itself when it has the dtype already.
Tensor converted(const Tensor& x, DType dtype, const char* who);

}  // namespace baregrad

// Singular values for other functions, whose name errors carry.
#pragma once

#include "baregrad/tensor.h"

namespace baregrad::linalg {

Tensor singular_values(const Tensor& x, const char* who);

}  // namespace baregrad::linalg

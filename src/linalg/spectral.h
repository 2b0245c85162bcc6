// Singular values in the name of another function.
#pragma once

#include "baregrad/tensor.h"

namespace baregrad::linalg {

Tensor singular_values(const Tensor& x, const char* who);

}  // namespace baregrad::linalg

// What the linalg ops take: checks of their inputs.
#pragma once

#include <initializer_list>

#include "baregrad/tensor.h"

namespace baregrad {

/// At least 2-d. ValueError for an undefined tensor, ShapeError.
void require_matrices(const Tensor& x, const char* who);
/// At least 2-d and float32 or float64, which decompositions support.
void require_real(const Tensor& x, const char* who);
/// The same, and square.
void require_square(const Tensor& x, const char* who);

/// All axes but the last two.
Dims stack_of(const Tensor& x);
/// The stack's shape with axes after it.
Dims with_axes(Dims stack, std::initializer_list<std::int64_t> sizes);

}  // namespace baregrad

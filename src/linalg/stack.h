// Tensors as stacks of matrices: checks, and conversions for decompose.h.
#pragma once

#include <functional>
#include <string>

#include "baregrad/ops.h"
#include "baregrad/tensor.h"
#include "linalg/decompose.h"

namespace baregrad::linalg {

/// Requires at least two dimensions. Throws ShapeError, and ValueError for an undefined tensor.
void require_matrices(const Tensor& x, const char* who);
/// Requires at least two dimensions and float32 or float64.
void require_real(const Tensor& x, const char* who);
/// The same, and square matrices.
void require_square(const Tensor& x, const char* who);

/// All axes but the last two.
Dims stack_of(const Tensor& x);
/// The shape of the stack with further axes appended.
Dims with_axes(Dims stack, std::initializer_list<std::int64_t> sizes);
/// From [...] to [..., 1, 1].
Tensor as_matrices(const Tensor& x);
/// From [..., n] to [..., 1, n], and to [..., n, 1].
Tensor as_rows(const Tensor& x);
Tensor as_columns(const Tensor& x);

/// A float64 copy with column-major matrices. Its shape is that of x transposed.
Tensor columns_of(const Tensor& x);
/// The inverse: a row-major tensor of the dtype.
Tensor from_columns(const Tensor& columns, DType dtype);
/// The i-th matrix of such a copy.
Matrix matrix_at(const Tensor& columns, std::int64_t i);

/// Calls fn(i) for every matrix of x. The product of `sides` is the work per matrix. Throws
/// OutOfMemory if Eigen cannot allocate memory.
void for_each_matrix(const Tensor& x, std::initializer_list<std::int64_t> sides, const char* who,
                     const std::function<void(std::int64_t)>& fn);

/// "matrix 3 of float32[5,4,4]", or "float32[4,4]".
std::string name_matrix(const Tensor& x, std::int64_t i);
/// Throws the ValueError of an unsuccessful outcome.
void require_fine(Outcome outcome, const Tensor& x, std::int64_t i, const char* who);

}  // namespace baregrad::linalg

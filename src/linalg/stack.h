// Tensors as stacks of matrices: what they must be, and how they reach decompose.h.
#pragma once

#include <functional>
#include <string>

#include "baregrad/ops.h"
#include "baregrad/tensor.h"
#include "linalg/decompose.h"

namespace baregrad::linalg {

/// At least 2-d. ValueError for an undefined tensor, ShapeError.
void require_matrices(const Tensor& x, const char* who);
/// At least 2-d and float32 or float64, which decompositions are for.
void require_real(const Tensor& x, const char* who);
/// The same, and square.
void require_square(const Tensor& x, const char* who);

/// All axes but the last two.
Dims stack_of(const Tensor& x);
/// The stack's shape with axes after it.
Dims with_axes(Dims stack, std::initializer_list<std::int64_t> sizes);
/// [...] as [..., 1, 1].
Tensor as_matrices(const Tensor& x);
/// [..., n] as [..., 1, n], and as [..., n, 1].
Tensor as_rows(const Tensor& x);
Tensor as_columns(const Tensor& x);

/// A float64 copy whose matrices lie in columns: its shape is that of x transposed.
Tensor columns_of(const Tensor& x);
/// The other way: a row-major tensor of the dtype.
Tensor from_columns(const Tensor& columns, DType dtype);
/// The i-th matrix of such columns.
Matrix matrix_at(const Tensor& columns, std::int64_t i);

/// fn(i) for every matrix of x; `sides` are the sizes whose product is the work of one. Throws
/// OutOfMemory where Eigen finds none for itself.
void for_each_matrix(const Tensor& x, std::initializer_list<std::int64_t> sides, const char* who,
                     const std::function<void(std::int64_t)>& fn);

/// "matrix 3 of float32[5,4,4]", or "float32[4,4]".
std::string name_matrix(const Tensor& x, std::int64_t i);
/// Throws ValueError unless the outcome is fine.
void require_fine(Outcome outcome, const Tensor& x, std::int64_t i, const char* who);

}  // namespace baregrad::linalg

// Tensors as stacks of matrices.
#include "linalg/stack.h"

namespace baregrad::linalg {

Tensor as_matrices(const Tensor& x) { return reshape(x, with_axes(x.shape(), {1, 1})); }

Tensor as_rows(const Tensor& x) { return expand_dims(x, {-2}); }
Tensor as_columns(const Tensor& x) { return expand_dims(x, {-1}); }

Tensor identity_like(const Tensor& x) { return eye(x.size(-1), {}, 0, x.dtype(), x.device()); }

}  // namespace baregrad::linalg

// Norms, trace and cross product.
#include <algorithm>
#include <cmath>

#include "baregrad/error.h"
#include "baregrad/linalg.h"
#include "core/checked.h"
#include "core/message.h"
#include "linalg/spectral.h"
#include "linalg/stack.h"
#include "ops/infer.h"
#include "ops/positions.h"
#include "ops/widened.h"

namespace baregrad::linalg {

namespace {

constexpr const char* kMatrixNorm = "matrix_norm";

void require_floating(const Tensor& x, const char* who) {
  require_defined(x, "x", who);
  if (is_floating(x.dtype())) return;
  throw DTypeError(
      message(who, ": takes floating dtypes, not ", describe(x), "; convert with astype"));
}

/// One number per matrix, with two axes of size 1 if they are kept.
Tensor per_matrix(const Tensor& norms, bool keepdims) {
  return keepdims ? as_matrices(norms) : norms;
}

/// The largest or smallest element along the last axis.
Tensor extreme(const Tensor& each, bool greatest, const Tensor& x) {
  if (each.size(-1) == 0) {
    throw ValueError(message(kMatrixNorm, ": the matrices of ", describe(x),
                             " are empty; only \"fro\" and \"nuc\" have a value then"));
  }
  return greatest ? amax(each, -1) : amin(each, -1);
}

void require_triples(const Tensor& x, const Tensor& y, std::int64_t axis) {
  constexpr const char* kWho = "cross";
  require_defined(x, "x", kWho);
  require_defined(y, "y", kWho);
  if (is_bool(x.dtype()) || is_bool(y.dtype())) {
    throw DTypeError(message(kWho, ": takes numbers, not ", describe(x), " and ", describe(y)));
  }
  if (axis >= 0 && x.ndim() != y.ndim()) {
    throw ValueError(message(kWho, ": axis ", axis, " of ", describe(x), " and ", describe(y),
                             " is not the same one; count from the end, with a negative axis"));
  }
  normalize_axis(axis, std::min(x.ndim(), y.ndim()), kWho);
  Dims together;
  if (x.size(axis) != 3 || y.size(axis) != 3 || !broadcast_shapes(x.shape(), y.shape(), together)) {
    throw ShapeError(message(kWho, ": ", describe(x), " and ", describe(y),
                             " need size 3 along axis ", axis, ", and all others must broadcast"));
  }
}

}  // namespace

Tensor matrix_norm(const Tensor& x, bool keepdims, std::string_view ord) {
  require_floating(x, kMatrixNorm);
  require_matrices(x, kMatrixNorm);
  if (ord == "fro") return norm(x, 2.0, {-2, -1}, keepdims);
  if (ord == "nuc") return per_matrix(sum(singular_values(x, kMatrixNorm), -1), keepdims);
  throw ValueError(message(kMatrixNorm, ": no norm is called \"", ord,
                           "\"; there are \"fro\", \"nuc\", 1, -1, 2, -2 and both infinities"));
}

Tensor matrix_norm(const Tensor& x, bool keepdims, double ord) {
  require_floating(x, kMatrixNorm);
  require_matrices(x, kMatrixNorm);
  const bool greatest = ord > 0;
  if (std::fabs(ord) == 2.0) {
    return per_matrix(extreme(singular_values(x, kMatrixNorm), greatest, x), keepdims);
  }
  if (std::fabs(ord) == 1.0 || std::isinf(ord)) {
    const Tensor sums = sum(abs(x), std::isinf(ord) ? -1 : -2);
    return per_matrix(extreme(sums, greatest, x), keepdims);
  }
  throw ValueError(message(kMatrixNorm, ": there is no norm ", ord,
                           "; there are \"fro\", \"nuc\", 1, -1, 2, -2 and both infinities"));
}

Tensor vector_norm(const Tensor& x, const Axes& axes, bool keepdims, double ord) {
  constexpr const char* kWho = "vector_norm";
  require_floating(x, kWho);
  axes_mask(axes, x.ndim(), kWho);
  if (std::isnan(ord)) throw ValueError(message(kWho, ": the order is NaN"));
  return norm(x, ord, axes, keepdims);
}

Tensor diagonal(const Tensor& x, std::int64_t offset) {
  require_matrices(x, "diagonal");
  return baregrad::diagonal(x, offset, -2, -1);
}

Tensor trace(const Tensor& x, std::int64_t offset, DTypeOption dtype) {
  constexpr const char* kWho = "trace";
  require_matrices(x, kWho);
  if (is_bool(x.dtype())) throw DTypeError(message(kWho, ": takes numbers, not ", describe(x)));
  return sum(baregrad::diagonal(x, offset, -2, -1), -1, false, dtype);
}

Tensor cross(const Tensor& x, const Tensor& y, std::int64_t axis) {
  require_triples(x, y, axis);
  // (x_1 y_2 - x_2 y_1, ...)
  const Widened wide({&x, &y});
  const Tensor a = wide(x);
  const Tensor b = wide(y);
  const auto ahead = [axis](const Tensor& t, std::int64_t by) { return roll(t, {-by}, axis); };
  return wide.rounded(ahead(a, 1) * ahead(b, 2) - ahead(a, 2) * ahead(b, 1));
}

}  // namespace baregrad::linalg

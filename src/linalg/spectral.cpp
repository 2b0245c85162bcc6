// Eigenvalues and singular values, and functions based on them.
#include "linalg/spectral.h"

#include <algorithm>
#include <limits>

#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/linalg.h"
#include "core/message.h"
#include "linalg/stack.h"
#include "ops/dispatch.h"
#include "ops/infer.h"
#include "ops/positions.h"

namespace baregrad::linalg {

namespace {

using autograd::Context;
using autograd::Tensors;

bool is_recorded(const Tensor& x) { return autograd::is_grad_enabled() && x.requires_grad(); }

/// x / by, and zero where both are zero: a zero gradient stays zero.
Tensor divided(const Tensor& x, const Tensor& by) {
  return x / where(logical_and(x == 0.0, by == 0.0), 1.0, by);
}

/// The differences w_j - w_i at [i, j].
Tensor differences(const Tensor& w) { return as_rows(w) - as_columns(w); }

/// The values on the diagonal of matrices.
Tensor on_diagonal(const Tensor& values) { return as_columns(values) * identity_like(values); }

// ---- Symmetric matrices -------------------------------------------------------------------------

struct SymmetricEigen : autograd::Function<SymmetricEigen> {
  static constexpr const char* kName = "eigh";

  static Tensors forward(Context& context, const Tensor& x, const char* who) {
    Tensors results = run_many(OpId::linalg_eigh, {&x}, {}, who);
    context.save_for_backward(results);
    return results;
  }
  /// dw = diag(V^T dA V), V^T dV = (V^T dA V) / (w_j - w_i) off the diagonal.
  static Tensors backward(Context& context, const Tensors& g) {
    const Tensors saved = context.saved();
    const Tensor& v = saved[1];
    const Tensor turned = matmul(matrix_transpose(v), g[1]);
    const Tensor skew = turned - matrix_transpose(turned);
    const Tensor inner = divided(skew, differences(saved[0])) * 0.5 + on_diagonal(g[0]);
    return {matmul(matmul(v, inner), matrix_transpose(v))};
  }
};

// ---- Singular values ----------------------------------------------------------------------------

Tensors svd_of(const Tensor& x, bool full, const char* who) {
  return run_many(OpId::linalg_svd, {&x}, SvdAttrs{full, x.dtype()}, who);
}

Tensor values_of(const Tensor& x, DType dtype, const char* who) {
  return run(OpId::linalg_svdvals, {&x}, SvdAttrs{false, dtype}, who);
}

struct ReducedSvd : autograd::Function<ReducedSvd> {
  static constexpr const char* kName = "svd";

  static Tensors forward(Context& context, const Tensor& x, const char* who) {
    Tensors results = svd_of(x, false, who);
    context.save_for_backward(results);
    return results;
  }

  /// The contribution of a gradient of singular vectors (in columns) inside U [...] Vh, before S.
  static Tensor turned(const Tensor& vectors, const Tensor& g, const Tensor& apart) {
    const Tensor product = matmul(matrix_transpose(vectors), g);
    return divided(product - matrix_transpose(product), apart);
  }
  /// The contribution of a gradient of singular vectors outside their span, divided by S.
  static Tensor beside(const Tensor& vectors, const Tensor& g, const Tensor& s) {
    const Tensor inside = matmul(vectors, matmul(matrix_transpose(vectors), g));
    return divided(g - inside, as_rows(s));
  }
  static Tensors backward(Context& context, const Tensors& g) {
    const Tensors saved = context.saved();
    const Tensor& u = saved[0];
    const Tensor& s = saved[1];
    const Tensor& vh = saved[2];
    const Tensor v = matrix_transpose(vh);
    const Tensor gv = matrix_transpose(g[2]);
    // s_j^2 - s_i^2 as a product of factors: the difference of squares would cancel.
    const Tensor apart = differences(s) * (as_rows(s) + as_columns(s));
    const Tensor inner = turned(u, g[0], apart) * as_rows(s) +
                         as_columns(s) * turned(v, gv, apart) + on_diagonal(g[1]);
    Tensor gradient = matmul(matmul(u, inner), vh);
    if (u.size(-2) > u.size(-1)) gradient = gradient + matmul(beside(u, g[0], s), vh);
    if (v.size(-2) > v.size(-1)) {
      gradient = gradient + matmul(u, matrix_transpose(beside(v, gv, s)));
    }
    return {gradient};
  }
};

/// Full matrices of an x that is not square: only S has a gradient.
struct FullSvd : autograd::Function<FullSvd> {
  static constexpr const char* kName = "svd";

  static Tensors forward(Context& context, const Tensor& x) {
    context.save_for_backward({x});
    return svd_of(x, true, kName);
  }
  static Tensors backward(Context& context, const Tensors& g) {
    const Tensor x = context.saved()[0];
    if (any(g[0] != 0.0).item<bool>() || any(g[2] != 0.0).item<bool>()) {
      throw GradError(message(kName, ": U and Vh of ", describe(x),
                              " have no gradient as full matrices: the columns beyond the singular"
                              " values are any basis; ask for full_matrices = false"));
    }
    const Svd f = svd(x, false);
    return {matmul(f.U * as_rows(g[1]), f.Vh)};
  }
};

/// A mask of the float64 singular values that count as non-zero.
Tensor counted(const Tensor& s, const Tensor& x, const std::optional<Operand>& rtol,
               const char* who) {
  const Tensor greatest = narrow(s, -1, 0, std::min<std::int64_t>(s.size(-1), 1));
  if (!rtol) {
    const double epsilon = x.dtype() == DType::Float32 ? std::numeric_limits<float>::epsilon()
                                                       : std::numeric_limits<double>::epsilon();
    return s > greatest * (epsilon * static_cast<double>(std::max(x.size(-2), x.size(-1))));
  }
  const Tensor* each = rtol->tensor();
  if (each == nullptr) return s > greatest * rtol->scalar();
  require_defined(*each, "rtol", who);
  Dims stack;
  if (!broadcast_shapes(each->shape(), stack_of(x), stack) || !(stack == stack_of(x))) {
    throw ShapeError(message(who, ": rtol ", describe(*each),
                             " does not broadcast to the stack of ", describe(x)));
  }
  if (!is_floating(each->dtype())) {
    throw DTypeError(message(who, ": rtol must be floating, not ", describe(*each)));
  }
  return s > greatest * as_columns(astype(each->detach(), DType::Float64, false));
}

struct PseudoInverse : autograd::Function<PseudoInverse> {
  static constexpr const char* kName = "pinv";

  /// The limit has no gradient. It is a pointer, so that it is not an input of the function.
  static Tensor forward(Context& context, const Tensor& x, const std::optional<Operand>* rtol) {
    const Tensors parts = run_many(OpId::linalg_svd, {&x}, SvdAttrs{false, DType::Float64}, kName);
    const Tensor& s = parts[1];
    const Tensor counts = counted(s, x, *rtol, kName);
    const Tensor inverse = where(counts, 1.0 / where(counts, s, 1.0), 0.0);
    // V diag(1 / S) U^T
    Tensor p = astype(matmul(matrix_transpose(parts[2]) * as_rows(inverse),
                             contiguous(matrix_transpose(parts[0]))),
                      x.dtype(), false);
    context.save_for_backward({x, p});
    return p;
  }
  /// dP = -P dA P + P P^T dA^T (1 - A P) + (1 - P A) dA^T P^T P, for a constant rank.
  static Tensors backward(Context& context, const Tensors& g) {
    const Tensors saved = context.saved();
    const Tensor& a = saved[0];
    const Tensor& p = saved[1];
    const Tensor pt = matrix_transpose(p);
    const Tensor gt = matrix_transpose(g[0]);
    const Tensor right = matmul(matmul(gt, p), pt);
    const Tensor left = matmul(matmul(pt, p), gt);
    return {(right - matmul(a, matmul(p, right))) + (left - matmul(matmul(left, p), a)) -
            matmul(matmul(pt, g[0]), pt)};
  }
};

}  // namespace

Tensor singular_values(const Tensor& x, const char* who) {
  require_real(x, who);
  if (is_recorded(x)) return ReducedSvd::apply(x, who)[1];
  return values_of(x.detach(), x.dtype(), who);
}

Eigh eigh(const Tensor& x) {
  require_square(x, "eigh");
  const Tensors results = SymmetricEigen::apply(x, SymmetricEigen::kName);
  return {results[0], results[1]};
}

Tensor eigvalsh(const Tensor& x) {
  constexpr const char* kWho = "eigvalsh";
  require_square(x, kWho);
  if (is_recorded(x)) return SymmetricEigen::apply(x, kWho)[0];
  const Tensor still = x.detach();
  return run(OpId::linalg_eigvalsh, {&still}, {}, kWho);
}

Svd svd(const Tensor& x, bool full_matrices) {
  require_real(x, "svd");
  const bool square = x.size(-2) == x.size(-1);
  const Tensors results =
      full_matrices && !square ? FullSvd::apply(x) : ReducedSvd::apply(x, ReducedSvd::kName);
  return {results[0], results[1], results[2]};
}

Tensor svdvals(const Tensor& x) { return singular_values(x, "svdvals"); }

Tensor pinv(const Tensor& x, const std::optional<Operand>& rtol) {
  require_real(x, "pinv");
  return PseudoInverse::apply(x, &rtol);
}

Tensor matrix_rank(const Tensor& x, const std::optional<Operand>& rtol) {
  constexpr const char* kWho = "matrix_rank";
  require_real(x, kWho);
  const Tensor still = x.detach();
  return count_nonzero(counted(values_of(still, DType::Float64, kWho), still, rtol, kWho), -1);
}

}  // namespace baregrad::linalg

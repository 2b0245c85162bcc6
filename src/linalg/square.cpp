// Functions of square matrices, by Gaussian elimination.
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

struct Cholesky : autograd::Function<Cholesky> {
  static constexpr const char* kName = "cholesky";

  static Tensor forward(Context& context, const Tensor& x) {
    Tensor l = run(OpId::linalg_cholesky, {&x}, {}, kName);
    context.save_for_backward({l});
    return l;
  }
  /// The transpose of dL = L phi(L^-1 dA L^-T), where phi is the lower triangle with half of the
  /// diagonal. The result is symmetric, as dA is.
  static Tensors backward(Context& context, const Tensors& g) {
    const Tensor upper = matrix_transpose(context.saved()[0]);
    const Tensor product = matmul(upper, g[0]);
    const Tensor phi = (tril(product) + tril(product, -1)) * 0.5;
    const Tensor once = solve(upper, phi);
    const Tensor twice = solve(upper, matrix_transpose(once));
    return {(twice + matrix_transpose(twice)) * 0.5};
  }
};

/// The cofactors of singular matrices: U diag(products of all other singular values) Vh, times the
/// sign of det(U Vh).
Tensor cofactors_of_singular(const Tensor& x) {
  const Svd f = svd(x, false);
  const Tensor others = prod(where(astype(identity_like(x), DType::Bool), 1.0, as_rows(f.S)), -1);
  const Tensor sign = linalg::det(f.U.detach()) * linalg::det(f.Vh.detach());
  return matmul(f.U * (as_matrices(sign) * as_rows(others)), f.Vh);
}

/// The derivative of the determinant: det x^-T if x is invertible.
Tensor cofactors(const Tensor& x, const Tensor& determinant) {
  const Tensor is_singular = as_matrices(determinant == 0.0);
  if (!any(is_singular).item<bool>()) {
    return as_matrices(determinant) * matrix_transpose(inv(x));
  }
  // Both formulas are computed for the whole stack, with harmless matrices in place of the others.
  const Tensor identity = identity_like(x);
  const Tensor distinct = identity * arange(1, x.size(-1) + 1, 1, x.dtype(), x.device());
  const Tensor regular = inv(where(is_singular, identity, x));
  return where(is_singular, cofactors_of_singular(where(is_singular, x, distinct)),
               as_matrices(determinant) * matrix_transpose(regular));
}

struct Det : autograd::Function<Det> {
  static constexpr const char* kName = "det";

  static Tensor forward(Context& context, const Tensor& x) {
    Tensor result = run(OpId::linalg_det, {&x}, {}, kName);
    context.save_for_backward({x, result});
    return result;
  }
  static Tensors backward(Context& context, const Tensors& g) {
    const Tensors saved = context.saved();
    return {as_matrices(g[0]) * cofactors(saved[0], saved[1])};
  }
};

struct SignAndLog : autograd::Function<SignAndLog> {
  static constexpr const char* kName = "slogdet";

  static Tensors forward(Context& context, const Tensor& x) {
    Tensors results = run_many(OpId::linalg_slogdet, {&x}, {}, kName);
    context.save_for_backward({x, results[0].detach()});
    return results;
  }
  /// The sign is piecewise constant: its gradient is zero.
  static Tensors backward(Context& context, const Tensors& g) {
    const Tensors saved = context.saved();
    const Tensor& x = saved[0];
    // Singular matrices whose logarithm has no gradient: only the sign was used.
    const Tensor unused = as_matrices(logical_and(saved[1] == 0.0, g[1] == 0.0));
    if (!any(unused).item<bool>()) return {as_matrices(g[1]) * matrix_transpose(inverse_of(x))};
    const Tensor regular = inverse_of(where(unused, identity_like(x), x));
    return {where(unused, 0.0, as_matrices(g[1]) * matrix_transpose(regular))};
  }

 private:
  static Tensor inverse_of(const Tensor& x);
};

struct Inverse : autograd::Function<Inverse> {
  static constexpr const char* kName = "inv";

  static Tensor forward(Context& context, const Tensor& x, const char* who) {
    Tensor y = run(OpId::linalg_inv, {&x}, {}, who);
    context.save_for_backward({y});
    return y;
  }
  static Tensors backward(Context& context, const Tensors& g) {
    const Tensor y = matrix_transpose(context.saved()[0]);
    return {negative(matmul(matmul(y, g[0]), y))};
  }
};

Tensor SignAndLog::inverse_of(const Tensor& x) { return Inverse::apply(x, kName); }

/// For stacks of one shape and one dtype.
struct Solve : autograd::Function<Solve> {
  static constexpr const char* kName = "solve";

  static Tensor forward(Context& context, const Tensor& a, const Tensor& b) {
    Tensor y = run(OpId::linalg_solve, {&a, &b}, {}, kName);
    context.save_for_backward({a, y});
    return y;
  }
  static Tensors backward(Context& context, const Tensors& g) {
    const Tensors saved = context.saved();
    const Tensor back = apply(matrix_transpose(saved[0]), g[0]);
    Tensors gradients(2);
    if (context.needs_grad(0)) {
      gradients[0] = negative(matmul(back, matrix_transpose(saved[1])));
    }
    if (context.needs_grad(1)) gradients[1] = back;
    return gradients;
  }
};

}  // namespace

Tensor cholesky(const Tensor& x, bool upper) {
  require_square(x, "cholesky");
  if (!upper) return Cholesky::apply(x);
  return contiguous(matrix_transpose(Cholesky::apply(matrix_transpose(x))));
}

Tensor det(const Tensor& x) {
  require_square(x, "det");
  return Det::apply(x);
}

Slogdet slogdet(const Tensor& x) {
  require_square(x, "slogdet");
  const Tensors results = SignAndLog::apply(x);
  return {results[0], results[1]};
}

Tensor inv(const Tensor& x) {
  require_square(x, "inv");
  return Inverse::apply(x, Inverse::kName);
}

Tensor solve(const Tensor& a, const Tensor& b) {
  constexpr const char* kWho = "solve";
  require_square(a, kWho);
  require_defined(b, "b", kWho);
  if (b.ndim() == 0) {
    throw ShapeError(message(kWho, ": b is ", describe(b), "; needs a vector or matrices"));
  }
  const Tensor right = b.ndim() == 1 ? as_columns(b) : b;
  require_real(right, kWho);
  const std::int64_t n = a.size(-1);
  Dims stack;
  if (right.size(-2) != n || !broadcast_shapes(stack_of(a), stack_of(right), stack)) {
    throw ShapeError(message(kWho, ": ", describe(a), " and ", describe(b), " do not fit: b needs ",
                             n, " rows, and the stacks must broadcast"));
  }
  const DType dtype = promote(a.dtype(), b.dtype());
  const Tensor y = Solve::apply(
      broadcast_to(astype(a, dtype, false), with_axes(stack, {n, n})),
      broadcast_to(astype(right, dtype, false), with_axes(stack, {n, right.size(-1)})));
  return b.ndim() == 1 ? squeeze(y, -1) : y;
}

Tensor matrix_power(const Tensor& x, std::int64_t n) {
  constexpr const char* kWho = "matrix_power";
  require_square(x, kWho);
  // With x's history, whose gradient is zero.
  if (n == 0) return where(full({}, true, {}, x.device()), identity_like(x), x);
  Tensor square = n < 0 ? Inverse::apply(x, kWho) : x;
  Tensor result;
  // Unsigned, because the negative of the smallest int64 overflows.
  auto left = n < 0 ? -static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
  for (; left != 0; left >>= 1) {
    if ((left & 1) != 0) result = result.defined() ? matmul(result, square) : square;
    if (left > 1) square = matmul(square, square);
  }
  return n == 1 ? clone(x) : result;
}

}  // namespace baregrad::linalg

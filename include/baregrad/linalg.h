// Decompositions of matrices and what is made of them: the `linalg` extension of the array API,
// 2024.12, for real numbers. Its matmul, matrix_transpose, outer, tensordot and vecdot are in
// ops.h.
//
// Matrices stand in the last two axes; all functions work on every matrix of a stack, which may
// hold none, and on matrices without rows or columns. float32 and float64 are taken (norms, trace,
// diagonal and cross take more). Decompositions, and what is read off them, are computed in float64
// and rounded once, with equal bits at any number of threads. Errors name the input and the place
// in its stack, in row-major order: "matrix 3 of float32[5,4,4]".
//
// A matrix that holds a NaN or an infinity: det, slogdet, inv, solve and qr give NaN throughout;
// products and sums (matrix_power, the norms "fro", 1 and infinity, vector_norm) carry it on;
// cholesky and all that needs eigenvalues or singular values (eigh, eigvalsh, svd, svdvals, pinv,
// matrix_rank, the norms 2, -2 and "nuc") throw ValueError.
//
// Gradients are differentiable themselves. They are infinite or NaN where there is none: those of
// eigenvectors of equal eigenvalues, of singular vectors of equal or zero singular values. The
// values themselves have one there, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "baregrad/export.h"
#include "baregrad/ops.h"
#include "baregrad/tensor.h"

namespace baregrad::linalg {

// ---- Square matrices --------------------------------------------------------------------------

/// Lower triangular L with x = L L^T, or upper U with x = U^T U. Only that triangle of x is read
/// (the gradient, too, is that of a symmetric x). ValueError where a matrix is not positive
/// definite.
BAREGRAD_API Tensor cholesky(const Tensor& x, bool upper = false);

/// Of a 0 x 0 matrix: 1. The gradient of a singular matrix is right, too; its second derivative
/// only where singular values are distinct, and not where it is singular but for rounding.
BAREGRAD_API Tensor det(const Tensor& x);

struct [[nodiscard]] Slogdet {
  Tensor sign;       ///< -1, 0 or 1
  Tensor logabsdet;  ///< -infinity for a singular matrix
};
/// det = sign * exp(logabsdet), where det itself might overflow. The gradient of the sign is zero;
/// that of the logarithm of a singular matrix is an error (ValueError).
BAREGRAD_API Slogdet slogdet(const Tensor& x);

/// ValueError where a matrix is exactly singular: where elimination meets a column of zeros.
BAREGRAD_API Tensor inv(const Tensor& x);

/// y with a y = b. b is one vector if it is 1-d, else a stack of matrices [..., n, k]; the stacks
/// broadcast. ValueError where a matrix of a is exactly singular. float32 and float64 may be mixed.
BAREGRAD_API Tensor solve(const Tensor& a, const Tensor& b);

/// n factors x, by squaring, each product in x's dtype; the identity for n = 0, those of inv(x) for
/// negative n.
BAREGRAD_API Tensor matrix_power(const Tensor& x, std::int64_t n);

// ---- Eigenvalues and singular values ------------------------------------------------------------

struct [[nodiscard]] Eigh {
  Tensor eigenvalues;   ///< [..., n], ascending
  Tensor eigenvectors;  ///< [..., n, n], orthonormal, one per column
};
/// x = V diag(w) V^T of a symmetric x. Only the lower triangle is read; the gradient is that of a
/// symmetric x, and so symmetric. The signs of eigenvectors mean nothing: a loss must not depend on
/// them.
BAREGRAD_API Eigh eigh(const Tensor& x);
BAREGRAD_API Tensor eigvalsh(const Tensor& x);

struct [[nodiscard]] Svd {
  Tensor U;   ///< [..., m, m], or [..., m, k] with k = min(m, n)
  Tensor S;   ///< [..., k], descending, not negative
  Tensor Vh;  ///< [..., n, n], or [..., k, n]
};
/// x = U diag(S) Vh. Asking for a gradient through the U or Vh of full matrices is a GradError,
/// unless x is square: the columns beyond k are any basis of the rest.
BAREGRAD_API Svd svd(const Tensor& x, bool full_matrices = true);
BAREGRAD_API Tensor svdvals(const Tensor& x);

/// The Moore-Penrose pseudo-inverse. Singular values up to rtol times the greatest count as zero;
/// rtol is a number or a tensor that broadcasts to the stack, max(m, n) * epsilon of the dtype when
/// not given. The gradient is right as long as the rank does not change.
BAREGRAD_API Tensor pinv(const Tensor& x, const std::optional<Operand>& rtol = {});
/// int64: how many singular values are greater than rtol times the greatest; rtol as for pinv.
BAREGRAD_API Tensor matrix_rank(const Tensor& x, const std::optional<Operand>& rtol = {});

enum class QrMode : std::uint8_t { Reduced, Complete };
struct [[nodiscard]] Qr {
  Tensor Q;  ///< [..., m, k] (reduced) with k = min(m, n), or [..., m, m] (complete)
  Tensor R;  ///< upper triangular, [..., k, n] or [..., m, n]
};
/// x = Q R, Q with orthonormal columns. The gradient needs linearly independent first k columns,
/// and Q to be square or of x's shape: GradError for a complete Q of more rows than columns.
BAREGRAD_API Qr qr(const Tensor& x, QrMode mode = QrMode::Reduced);

// ---- Norms: of floating dtypes, half precision included where no singular values are needed
// ------

/// "fro": root of the sum of squares; "nuc": sum of the singular values.
BAREGRAD_API Tensor matrix_norm(const Tensor& x, bool keepdims = false,
                                std::string_view ord = "fro");
/// 1 and -1: greatest and least sum of magnitudes of a column; infinity and -infinity: of a row;
/// 2 and -2: greatest and least singular value.
BAREGRAD_API Tensor matrix_norm(const Tensor& x, bool keepdims, double ord);

/// (sum |x|^ord)^(1/ord) over the axes, all by default; ord may be infinite (greatest or least
/// magnitude), 0 (how many are not zero) or negative.
BAREGRAD_API Tensor vector_norm(const Tensor& x, const Axes& axes = {}, bool keepdims = false,
                                double ord = 2.0);

// ---- Of any numeric dtype
// -------------------------------------------------------------------------

/// A view of the diagonal of each matrix; a positive offset lies above the main one.
BAREGRAD_API Tensor diagonal(const Tensor& x, std::int64_t offset = 0);
/// Sum of the diagonal; integers sum to int64 (uint64 for unsigned ones) unless a dtype is given.
BAREGRAD_API Tensor trace(const Tensor& x, std::int64_t offset = 0, DTypeOption dtype = {});
/// Of vectors of three along an axis, which is counted from the end if the numbers of dimensions
/// differ; the other axes broadcast.
BAREGRAD_API Tensor cross(const Tensor& x, const Tensor& y, std::int64_t axis = -1);

// ---- What does not compile, on purpose: see the end of ops.h. matrix_norm(x, "fro") would keep
// the
// ---- axes, as a text is no null pointer.
// clang-format off
template <NoSwitch T> Tensor cholesky(const Tensor&, T) = delete;
template <Switch T> Tensor matrix_power(const Tensor&, T) = delete;
template <NoSwitch T> Svd svd(const Tensor&, T) = delete;
template <NoSwitch T> Tensor matrix_norm(const Tensor&, T) = delete;
template <NoSwitch T, class Order> Tensor matrix_norm(const Tensor&, T, Order) = delete;
template <Switch T> Tensor matrix_norm(const Tensor&, bool, T) = delete;
template <NoSwitch T> Tensor vector_norm(const Tensor&, const Axes&, T, double = 2.0) = delete;
template <Switch T> Tensor vector_norm(const Tensor&, const Axes&, bool, T) = delete;
template <Switch T> Tensor cross(const Tensor&, const Tensor&, T) = delete;
// clang-format on

}  // namespace baregrad::linalg

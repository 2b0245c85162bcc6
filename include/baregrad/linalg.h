// Decompositions of matrices and functions based on them: the `linalg` extension of the array API,
// 2024.12, for real numbers. Its matmul, matrix_transpose, outer, tensordot and vecdot are in
// ops.h.
//
// Matrices are in the last two axes. All functions accept stacks of matrices, also empty stacks and
// matrices without rows or columns. The dtypes are float32 and float64; norms, trace, diagonal and
// cross accept more. Decompositions are computed in float64 and rounded once, with the same bits
// for any number of threads. Errors name the input and the position in its stack, in row-major
// order: "matrix 3 of float32[5,4,4]".
//
// For a matrix with a NaN or an infinity, det, slogdet, inv, solve and qr return NaN in all
// elements. Products and sums (matrix_power, the norms "fro", 1 and infinity, vector_norm)
// propagate it. cholesky, and functions that need eigenvalues or singular values (eigh, eigvalsh,
// svd, svdvals, pinv, matrix_rank, the norms 2, -2 and "nuc"), throw ValueError.
//
// Gradients are differentiable. They are infinite or NaN where no gradient exists: for eigenvectors
// of equal eigenvalues, and for singular vectors of equal or zero singular values. The eigenvalues
// and singular values themselves have gradients there.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "baregrad/export.h"
#include "baregrad/ops.h"
#include "baregrad/tensor.h"

namespace baregrad::linalg {

// ---- Square matrices --------------------------------------------------------------------------

/// The lower triangular L with x = L L^T, or the upper triangular U with x = U^T U. Only that
/// triangle of x is read; the gradient is that of a symmetric x. Throws ValueError if a matrix is
/// not positive definite.
BAREGRAD_API Tensor cholesky(const Tensor& x, bool upper = false);

/// The determinant; 1 for a 0 x 0 matrix. The gradient is correct for a singular matrix too. The
/// second derivative of a singular matrix is correct only if its singular values are distinct, and
/// not if it is singular only up to rounding.
BAREGRAD_API Tensor det(const Tensor& x);

struct [[nodiscard]] Slogdet {
  Tensor sign;       ///< -1, 0 or 1
  Tensor logabsdet;  ///< -infinity for a singular matrix
};
/// det = sign * exp(logabsdet), for determinants that could overflow. The gradient of the sign is
/// zero. The gradient of the logarithm of a singular matrix throws ValueError.
BAREGRAD_API Slogdet slogdet(const Tensor& x);

/// The inverse. Throws ValueError if a matrix is exactly singular: a pivot of the elimination is
/// zero.
BAREGRAD_API Tensor inv(const Tensor& x);

/// The y with a y = b. A 1-d b is one vector; otherwise b is a stack of matrices [..., n, k]. The
/// stacks broadcast. Throws ValueError if a matrix of a is exactly singular. float32 and float64
/// may be mixed.
BAREGRAD_API Tensor solve(const Tensor& a, const Tensor& b);

/// x to the power n, by squaring, with products in the dtype of x. The identity for n = 0, a power
/// of inv(x) for negative n.
BAREGRAD_API Tensor matrix_power(const Tensor& x, std::int64_t n);

// ---- Eigenvalues and singular values ------------------------------------------------------------

struct [[nodiscard]] Eigh {
  Tensor eigenvalues;   ///< [..., n], ascending
  Tensor eigenvectors;  ///< [..., n, n], orthonormal, one per column
};
/// x = V diag(w) V^T for a symmetric x. Only the lower triangle is read; the gradient is symmetric.
/// The signs of eigenvectors are arbitrary: a loss must not depend on them.
BAREGRAD_API Eigh eigh(const Tensor& x);
BAREGRAD_API Tensor eigvalsh(const Tensor& x);

struct [[nodiscard]] Svd {
  Tensor U;   ///< [..., m, m], or [..., m, k] with k = min(m, n)
  Tensor S;   ///< [..., k], descending, not negative
  Tensor Vh;  ///< [..., n, n], or [..., k, n]
};
/// x = U diag(S) Vh. A gradient through U or Vh of full matrices throws GradError unless x is
/// square: the columns after the first k are an arbitrary basis of the remaining space.
BAREGRAD_API Svd svd(const Tensor& x, bool full_matrices = true);
BAREGRAD_API Tensor svdvals(const Tensor& x);

/// The Moore-Penrose pseudo-inverse. Singular values up to rtol times the largest count as zero.
/// rtol is a number or a tensor that broadcasts to the stack; the default is max(m, n) times the
/// epsilon of the dtype. The gradient is correct where the rank is constant.
BAREGRAD_API Tensor pinv(const Tensor& x, const std::optional<Operand>& rtol = {});
/// int64: the number of singular values above rtol times the largest; rtol as for pinv.
BAREGRAD_API Tensor matrix_rank(const Tensor& x, const std::optional<Operand>& rtol = {});

enum class QrMode : std::uint8_t { Reduced, Complete };
struct [[nodiscard]] Qr {
  Tensor Q;  ///< [..., m, k] (reduced) with k = min(m, n), or [..., m, m] (complete)
  Tensor R;  ///< upper triangular, [..., k, n] or [..., m, n]
};
/// x = Q R, where Q has orthonormal columns. The gradient requires that the first k columns are
/// linearly independent. For an x with more rows than columns and a complete Q it throws GradError.
BAREGRAD_API Qr qr(const Tensor& x, QrMode mode = QrMode::Reduced);

// ---- Norms: of floating dtypes, half precision included where no singular values are needed
// ------

/// "fro": the root of the sum of squares; "nuc": the sum of the singular values.
BAREGRAD_API Tensor matrix_norm(const Tensor& x, bool keepdims = false,
                                std::string_view ord = "fro");
/// 1 and -1: the largest and smallest column sum of magnitudes; infinity and -infinity: of row
/// sums; 2 and -2: the largest and smallest singular value.
BAREGRAD_API Tensor matrix_norm(const Tensor& x, bool keepdims, double ord);

/// (sum |x|^ord)^(1/ord) over the axes, by default all. ord may be infinite (the largest or
/// smallest magnitude), 0 (the number of non-zero elements) or negative.
BAREGRAD_API Tensor vector_norm(const Tensor& x, const Axes& axes = {}, bool keepdims = false,
                                double ord = 2.0);

// ---- Of any numeric dtype
// -------------------------------------------------------------------------

/// A view of the diagonal of each matrix. A positive offset is above the main diagonal.
BAREGRAD_API Tensor diagonal(const Tensor& x, std::int64_t offset = 0);
/// The sum of the diagonal. Integers sum to int64, unsigned ones to uint64, unless a dtype is
/// given.
BAREGRAD_API Tensor trace(const Tensor& x, std::int64_t offset = 0, DTypeOption dtype = {});
/// The cross product of vectors of three elements along an axis. If the numbers of dimensions
/// differ, the axis is counted from the end. The other axes broadcast.
BAREGRAD_API Tensor cross(const Tensor& x, const Tensor& y, std::int64_t axis = -1);

// ---- Calls that do not compile on purpose: see the end of ops.h. In matrix_norm(x, "fro") the
// text
// ---- would be converted to the bool keepdims.
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

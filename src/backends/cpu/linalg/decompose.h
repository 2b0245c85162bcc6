// Decompositions of one matrix. Only decompose.cpp includes Eigen.
#pragma once

#include <cstdint>

namespace baregrad::kernels::linalg {

/// Borrowed memory, column-major: column j begins at data + j * rows.
struct Matrix {
  double* data;
  std::int64_t rows;
  std::int64_t cols;
};

enum class Outcome : std::uint8_t { Fine, NotFinite, NoConvergence };

// All functions overwrite `a`. Their outputs may be uninitialised memory.

struct Determinant {
  double value;
  double sign;
  double log_magnitude;
};
/// NaN if an element of a is not finite.
Determinant determinant(const Matrix& a);

/// Replaces b by a^-1 b, or by NaN if an element of a is not finite. False if a pivot is exactly
/// zero; b is undefined in that case.
bool solve_in_place(const Matrix& a, const Matrix& b);

/// Replaces a symmetric a by its Cholesky factor L. Reads the lower triangle. False if there is no
/// L.
bool cholesky_in_place(const Matrix& a);

/// The eigenvalues of a symmetric a, ascending. Reads the lower triangle. Replaces a by the
/// eigenvectors if they are requested.
Outcome eigh_in_place(const Matrix& a, double* values, bool vectors);

/// Replaces a by R, with zeros below the diagonal, and q by the orthogonal factor. q is rows x
/// rows, or has as many columns as R has non-zero rows. NaN if an element of a is not finite.
void qr_in_place(const Matrix& a, const Matrix& q);

/// The singular values, descending, of an a with at least as many rows as columns; u with rows x
/// cols or rows x rows elements, v with cols x cols. If u.data is null, neither u nor v is
/// computed.
Outcome svd_in_place(const Matrix& a, double* values, const Matrix& u, const Matrix& v);

}  // namespace baregrad::kernels::linalg

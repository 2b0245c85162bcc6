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

// All of these overwrite `a`. What they ask for beside it is uninitialised memory.

struct Determinant {
  double value;
  double sign;
  double log_magnitude;
};
/// All NaN where a has an element that is not finite.
Determinant determinant(const Matrix& a);

/// b becomes a^-1 b, or NaN where a has an element that is not finite. False, with b undefined,
/// when a pivot is exactly zero.
bool solve_in_place(const Matrix& a, const Matrix& b);

/// a becomes L, of a symmetric a whose lower triangle is read. False when it has none.
bool cholesky_in_place(const Matrix& a);

/// Eigenvalues, ascending, of a symmetric a whose lower triangle is read; a becomes the
/// eigenvectors where they are wanted.
Outcome eigh_in_place(const Matrix& a, double* values, bool vectors);

/// a becomes R, below whose diagonal are zeros, and q (rows x rows, or as many columns as R has
/// rows that are not zero) the orthogonal factor; NaN where a has an element that is not finite.
void qr_in_place(const Matrix& a, const Matrix& q);

/// Of an a with at least as many rows as columns: singular values, descending; u with rows x cols
/// or rows x rows, v with cols x cols. With u.data null neither u nor v is wanted.
Outcome svd_in_place(const Matrix& a, double* values, const Matrix& u, const Matrix& v);

}  // namespace baregrad::kernels::linalg

// Kernels of the linalg ops: matrices are read into float64 columns, decomposed one by one and
// rounded once.
#include <algorithm>

#include "backends/cpu/irregular/irregular.h"
#include "backends/cpu/linalg/stack.h"
#include "baregrad/error.h"
#include "core/message.h"

namespace baregrad::kernels {

using linalg::cols_of;
using linalg::for_each_matrix;
using linalg::Matrices;
using linalg::Matrix;
using linalg::Numbers;
using linalg::rows_of;

namespace {

/// b becomes a^-1 b for every matrix. `x` is what messages name. `prepare(i)` fills b[i].
template <class Prepare>
void solve_each(const Matrices& a, const Matrices& b, const View& x, const char* who,
                const Prepare& prepare) {
  const std::int64_t n = a[0].rows;
  for_each_matrix(x, {n, n, n + b[0].cols}, who, [&](std::int64_t i) {
    prepare(b[i]);
    if (linalg::solve_in_place(a[i], b[i])) return;
    throw ValueError(message(who, ": ", linalg::name_matrix(x, i), " is singular"));
  });
}

void set_identity(const Matrix& m) {
  std::fill_n(m.data, m.rows * m.cols, 0.0);
  for (std::int64_t k = 0; k < std::min(m.rows, m.cols); ++k) m.data[k * m.rows + k] = 1.0;
}

template <class Take>
void each_determinant(const Call& call, const Take& take) {
  const View& x = call.in[0];
  const std::int64_t n = cols_of(x);
  // A matrix has the determinant of its transpose.
  Matrices matrices(x, n, n);
  matrices.read_transposed(x);
  for_each_matrix(x, {n, n, n}, call.who,
                  [&](std::int64_t i) { take(i, linalg::determinant(matrices[i])); });
}

/// Eigenvalues into out[0], and eigenvectors into out[1] where there is one.
void eigen(const Call& call) {
  const View& x = call.in[0];
  const std::int64_t n = cols_of(x);
  const bool vectors = call.out.size() > 1;
  Matrices matrices(x, n, n);
  matrices.read(x);
  const Numbers values(call.out[0]);
  for_each_matrix(x, {n, n, n}, call.who, [&](std::int64_t i) {
    linalg::require_fine(linalg::eigh_in_place(matrices[i], values.data() + i * n, vectors), x, i,
                         call.who);
  });
  values.write();
  if (vectors) matrices.write(call.out[1]);
}

/// The matrices of x, or the transposes of wide ones: at least as many rows as columns.
void read_tall(Matrices& into, const View& x) {
  rows_of(x) < cols_of(x) ? into.read_transposed(x) : into.read(x);
}

}  // namespace

void linalg_cholesky_kernel(const Call& call) {
  const View& x = call.in[0];
  const std::int64_t n = cols_of(x);
  Matrices matrices(x, n, n);
  matrices.read(x);
  for_each_matrix(x, {n, n, n}, call.who, [&](std::int64_t i) {
    if (linalg::cholesky_in_place(matrices[i])) return;
    throw ValueError(
        message(call.who, ": ", linalg::name_matrix(x, i), " is not positive definite"));
  });
  matrices.write(call.out[0]);
}

void linalg_det_kernel(const Call& call) {
  const Numbers values(call.out[0]);
  each_determinant(call, [out = values.data()](std::int64_t i, const linalg::Determinant& d) {
    out[i] = d.value;
  });
  values.write();
}

void linalg_slogdet_kernel(const Call& call) {
  const Numbers signs(call.out[0]);
  const Numbers logs(call.out[1]);
  each_determinant(call, [&](std::int64_t i, const linalg::Determinant& d) {
    signs.data()[i] = d.sign;
    logs.data()[i] = d.log_magnitude;
  });
  signs.write();
  logs.write();
}

void linalg_inv_kernel(const Call& call) {
  const View& x = call.in[0];
  const std::int64_t n = cols_of(x);
  Matrices a(x, n, n);
  a.read(x);
  const Matrices inverse(x, n, n);
  solve_each(a, inverse, x, call.who, set_identity);
  inverse.write(call.out[0]);
}

void linalg_solve_kernel(const Call& call) {
  const View& x = call.in[0];
  const View& right = call.in[1];
  Matrices a(x, rows_of(x), cols_of(x));
  a.read(x);
  Matrices b(right, rows_of(right), cols_of(right));
  b.read(right);
  solve_each(a, b, x, call.who, [](const Matrix&) {});
  b.write(call.out[0]);
}

void linalg_eigh_kernel(const Call& call) { eigen(call); }
void linalg_eigvalsh_kernel(const Call& call) { eigen(call); }

void linalg_qr_kernel(const Call& call) {
  const View& x = call.in[0];
  const std::int64_t m = rows_of(x);
  const std::int64_t n = cols_of(x);
  const std::int64_t q_cols = cols_of(call.out[0]);
  Matrices r(x, m, n);
  r.read(x);
  const Matrices q(x, m, q_cols);
  for_each_matrix(x, {m, std::min(m, n), std::max(q_cols, n)}, call.who,
                  [&](std::int64_t i) { linalg::qr_in_place(r[i], q[i]); });
  q.write(call.out[0]);
  r.write(call.out[1]);
}

void linalg_svd_kernel(const Call& call) {
  const View& x = call.in[0];
  const bool wide = rows_of(x) < cols_of(x);
  const std::int64_t rows = std::max(rows_of(x), cols_of(x));
  const std::int64_t k = std::min(rows_of(x), cols_of(x));
  Matrices work(x, rows, k);
  read_tall(work, x);
  const Numbers values(call.out[1]);
  const bool full = call.attrs.as<SvdAttrs>().full;
  const Matrices u(x, rows, full ? rows : k);
  const Matrices v(x, k, k);
  for_each_matrix(x, {rows, k, k + 8}, call.who, [&](std::int64_t i) {
    linalg::require_fine(linalg::svd_in_place(work[i], values.data() + i * k, u[i], v[i]), x, i,
                         call.who);
  });
  // Of the transpose of a wide matrix U and V have changed places.
  (wide ? v : u).write(call.out[0]);
  values.write();
  (wide ? u : v).write_transposed(call.out[2]);
}

void linalg_svdvals_kernel(const Call& call) {
  const View& x = call.in[0];
  const std::int64_t rows = std::max(rows_of(x), cols_of(x));
  const std::int64_t k = std::min(rows_of(x), cols_of(x));
  Matrices work(x, rows, k);
  read_tall(work, x);
  const Numbers values(call.out[0]);
  const Matrix none{nullptr, 0, 0};
  for_each_matrix(x, {rows, k, k + 8}, call.who, [&](std::int64_t i) {
    linalg::require_fine(linalg::svd_in_place(work[i], values.data() + i * k, none, none), x, i,
                         call.who);
  });
  values.write();
}

}  // namespace baregrad::kernels

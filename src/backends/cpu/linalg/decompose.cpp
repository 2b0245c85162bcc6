// Decompositions by Eigen, each in one instantiation. Its blocked algorithms would bring a matrix
// product of their own, slower than ours and a third of this file's size in the library; so the
// panels are Eigen's and the product between them is backends/cpu/gemm.
#include "backends/cpu/linalg/decompose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "backends/cpu/gemm/gemm.h"
#include "parallel/interrupt.h"

// Eigen's assertions would end the process; their conditions are checked before the calls. Threads
// are managed by the engine.
#define EIGEN_NO_DEBUG
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Eigenvalues>

namespace baregrad::kernels::linalg {

namespace {

using Eigen::Index;
using Dense = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using View = Eigen::Map<Dense>;

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

View view_of(const Matrix& m) { return {m.data, m.rows, m.cols}; }

/// Calls the interrupt check before a step over `elements` elements. Steps of small matrices are
/// too short for it.
void may_give_up(Index elements) {
  constexpr Index kLongStep = 4096;
  if (elements >= kLongStep) parallel::poll_interrupt();
}

/// Divides by the power of two below the largest magnitude, so that squares of elements do not
/// overflow. The division is exact. Returns that power; NaN if an element is not finite.
double scale_down(View a) {
  const double greatest = a.size() == 0 ? 0.0 : a.cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
  if (!std::isfinite(greatest)) return kNaN;
  if (greatest == 0.0) return 1.0;
  const int exponent = std::ilogb(greatest);
  // In two steps: the reciprocal of a subnormal number overflows.
  a *= std::ldexp(1.0, -(exponent / 2));
  a *= std::ldexp(1.0, exponent / 2 - exponent);
  return std::ldexp(1.0, exponent);
}

/// One type for any part of a matrix, so that each of Eigen's functions is compiled once.
using Part = Eigen::Ref<Dense>;

/// rows := H rows, where H is the reflection along (1, tail).
void reflect(Part rows, const Eigen::Ref<const Vector>& tail, double factor, Vector& scratch) {
  rows.applyHouseholderOnTheLeft(tail, factor, scratch.data());
}

/// q := H_0 H_1 ... q. The reflector H_k does not change the first k + skipped rows; its tail is in
/// column k of `packed`.
void apply_reflectors(const Dense& packed, const Vector& factors, Index count, Index skipped,
                      View q) {
  Vector scratch(q.cols());
  for (Index k = count - 1; k >= 0; --k) {
    const Index first = k + skipped;
    may_give_up(q.size());
    reflect(q.bottomRows(q.rows() - first), packed.col(k).tail(packed.rows() - first - 1),
            factors(k), scratch);
  }
}

struct Reflectors {
  Dense packed;  ///< R above, reflectors below
  Vector factors;
};

Reflectors factorize(const View& a) {
  Reflectors r{a, Vector(std::min(a.rows(), a.cols()))};
  Vector scratch(a.cols());
  double on_diagonal = 0.0;
  for (Index k = 0; k < r.factors.size(); ++k) {
    const Index below = a.rows() - k - 1;
    may_give_up(r.packed.size());
    r.packed.col(k).tail(below + 1).makeHouseholderInPlace(r.factors(k), on_diagonal);
    r.packed(k, k) = on_diagonal;
    reflect(r.packed.bottomRightCorner(below + 1, a.cols() - k - 1), r.packed.col(k).tail(below),
            r.factors(k), scratch);
  }
  return r;
}

/// The width of a panel. Its columns are processed one by one, the rest by a product.
constexpr Index kPanel = 48;

/// c += a b
void add_product(Part c, const Part& a, const Dense& b) {
  if (c.size() == 0) return;
  kernels::GemmCall call;
  call.dtype = DType::Float64;
  call.m = c.rows();
  call.n = c.cols();
  call.k = a.cols();
  call.a = {a.data(), 1, a.outerStride()};
  call.b = {b.data(), 1, b.outerStride()};
  call.c = c.data();
  call.c_row_stride = 1;
  call.c_col_stride = c.outerStride();
  call.accumulate = true;
  kernels::gemm(call);
}

/// b := t^-1 b, where t is a panel of the triangle that Mode names.
template <unsigned Mode>
void solve_panel(const Part& t, Part b) {
  for (Index j = 0; j < b.cols(); ++j) {
    if (j % kPanel == 0) may_give_up(b.size());
    t.triangularView<Mode>().solveInPlace(b.col(j));
  }
}

/// Replaces a by L (below the diagonal) and U of a with exchanged rows. swaps[k]: the row that was
/// exchanged with row k.
void eliminate(View a, std::vector<Index>& swaps) {
  const Index n = a.rows();
  for (Index first = 0; first < n; first += kPanel) {
    const Index last = std::min(first + kPanel, n);
    for (Index k = first; k < last; ++k) {
      Index pivot = 0;
      may_give_up(a.size());
      a.col(k).tail(n - k).cwiseAbs().maxCoeff(&pivot);
      pivot += k;
      swaps.push_back(pivot);
      if (pivot != k) a.row(k).swap(a.row(pivot));
      if (a(k, k) == 0.0) continue;
      a.col(k).tail(n - k - 1) /= a(k, k);
      a.block(k + 1, k + 1, n - k - 1, last - k - 1).noalias() -=
          a.col(k).tail(n - k - 1) * a.row(k).segment(k + 1, last - k - 1);
    }
    const Index rest = n - last;
    solve_panel<Eigen::UnitLower>(a.block(first, first, last - first, last - first),
                                  a.block(first, last, last - first, rest));
    add_product(a.bottomRightCorner(rest, rest), a.block(last, first, rest, last - first),
                -a.block(first, last, last - first, rest));
  }
}

}  // namespace

Determinant determinant(const Matrix& a) {
  const View lu = view_of(a);
  if (!lu.allFinite()) return {kNaN, kNaN, kNaN};
  std::vector<Index> swaps;
  eliminate(lu, swaps);
  Determinant det{1.0, 1.0, 0.0};
  for (Index k = 0; k < lu.rows(); ++k) {
    const double pivot = swaps[static_cast<std::size_t>(k)] == k ? lu(k, k) : -lu(k, k);
    det.value *= pivot;
    det.sign *= static_cast<double>(pivot > 0.0) - static_cast<double>(pivot < 0.0);
    det.log_magnitude += std::log(std::fabs(pivot));
  }
  det.sign += 0.0;  // turns -0 into +0
  return det;
}

bool solve_in_place(const Matrix& a, const Matrix& b) {
  View lu = view_of(a);
  View x = view_of(b);
  if (!lu.allFinite()) {
    x.setConstant(kNaN);
    return true;
  }
  std::vector<Index> swaps;
  eliminate(lu, swaps);
  if ((lu.diagonal().array() == 0.0).any()) return false;
  const Index n = lu.rows();
  for (Index k = 0; k < n; ++k) x.row(k).swap(x.row(swaps[static_cast<std::size_t>(k)]));
  for (Index first = 0; first < n; first += kPanel) {
    const Index size = std::min(kPanel, n - first);
    const Index rest = n - first - size;
    solve_panel<Eigen::UnitLower>(lu.block(first, first, size, size), x.middleRows(first, size));
    add_product(x.bottomRows(rest), lu.block(first + size, first, rest, size),
                -x.middleRows(first, size));
  }
  for (Index end = n; end > 0; end -= std::min(kPanel, end)) {
    const Index size = std::min(kPanel, end);
    const Index first = end - size;
    solve_panel<Eigen::Upper>(lu.block(first, first, size, size), x.middleRows(first, size));
    add_product(x.topRows(first), lu.block(0, first, first, size), -x.middleRows(first, size));
  }
  return true;
}

bool cholesky_in_place(const Matrix& a) {
  View l = view_of(a);
  const Index n = l.rows();
  for (Index first = 0; first < n; first += kPanel) {
    const Index last = std::min(first + kPanel, n);
    for (Index k = first; k < last; ++k) {
      may_give_up(l.size());
      // A NaN or an infinity anywhere in the row has propagated to the diagonal.
      if (!(l(k, k) > 0.0) || std::isinf(l(k, k))) return false;
      l(k, k) = std::sqrt(l(k, k));
      auto below = l.col(k).tail(n - k - 1);
      below /= l(k, k);
      l.block(k + 1, k + 1, n - k - 1, last - k - 1).noalias() -=
          below * below.head(last - k - 1).transpose();
    }
    const Index rest = n - last;
    const auto below = l.block(last, first, rest, last - first);
    add_product(l.bottomRightCorner(rest, rest), below, -below.transpose());
  }
  l.triangularView<Eigen::StrictlyUpper>().setZero();
  return true;
}

namespace {

/// Reduces the lower triangle of a symmetric a to tridiagonal form and stores the reflectors below
/// it. Eigen's function does the same in one call, which cannot be interrupted.
void make_tridiagonal(View a, Vector& factors) {
  const Index n = a.rows();
  Vector update(n);
  for (Index k = 0; k + 1 < n; ++k) {
    may_give_up(a.size());
    const Index rest = n - k - 1;
    auto reflector = a.col(k).tail(rest);
    double below = 0.0;
    reflector.makeHouseholderInPlace(factors(k), below);
    // H corner H = corner - v w^T - w v^T, for the reflector v, whose first element is 1.
    reflector(0) = 1.0;
    auto corner = a.bottomRightCorner(rest, rest);
    auto w = update.head(rest);
    w.noalias() = corner.selfadjointView<Eigen::Lower>() * (factors(k) * reflector);
    w -= (0.5 * factors(k) * w.dot(reflector)) * reflector;
    corner.selfadjointView<Eigen::Lower>().rankUpdate(reflector, w, -1.0);
    reflector(0) = below;
  }
}

/// Whether an off-diagonal element of a matrix of magnitude 1 is a rounding error.
bool is_negligible(double beside, double above, double below) {
  if (std::fabs(beside) < std::numeric_limits<double>::min()) return true;
  const double scaled = beside / kEpsilon;
  return scaled * scaled <= std::fabs(above) + std::fabs(below);
}

/// QR iteration until the tridiagonal matrix is diagonal. A non-empty q is multiplied by the
/// rotations. False if it does not converge.
bool make_diagonal(Vector& diagonal, Vector& beside, Dense& q) {
  constexpr Index kMostSteps = 30;  // per eigenvalue; two or three are usual
  const Index n = diagonal.size();
  Index steps = 0;
  Index first = 0;
  for (Index last = n - 1; last > 0;) {
    for (Index i = first; i < last; ++i) {
      if (is_negligible(beside(i), diagonal(i), diagonal(i + 1))) beside(i) = 0.0;
    }
    // The last unreduced block.
    while (last > 0 && beside(last - 1) == 0.0) --last;
    if (last == 0) break;
    first = last - 1;
    while (first > 0 && beside(first - 1) != 0.0) --first;
    if (++steps > kMostSteps * n) return false;
    may_give_up(q.size() != 0 ? (last - first) * n : n);
    Eigen::internal::tridiagonal_qr_step<Eigen::ColMajor>(
        diagonal.data(), beside.data(), first, last, q.size() != 0 ? q.data() : nullptr, n);
  }
  return true;
}

}  // namespace

Outcome eigh_in_place(const Matrix& a, double* values, bool vectors) {
  if (a.rows == 0) return Outcome::Fine;
  const Index n = a.rows;
  View v = view_of(a);
  v.triangularView<Eigen::StrictlyUpper>().setZero();
  const double scale = scale_down(v);
  if (std::isnan(scale)) return Outcome::NotFinite;
  Vector factors(n - 1);
  make_tridiagonal(v, factors);
  Vector diagonal = v.diagonal();
  Vector beside = v.diagonal(-1);
  Dense q = vectors ? Dense::Identity(n, n) : Dense();
  if (!make_diagonal(diagonal, beside, q)) return Outcome::NoConvergence;
  // Selection sort: std::sort would add 4 KB of code.
  for (Index k = 0; k + 1 < n; ++k) {
    Index from = 0;
    diagonal.tail(n - k).minCoeff(&from);
    from += k;
    if (from == k) continue;
    std::swap(diagonal(k), diagonal(from));
    if (vectors) q.col(k).swap(q.col(from));
  }
  Eigen::Map<Vector>(values, n) = diagonal * scale;
  if (!vectors) return Outcome::Fine;
  const Dense reflectors = v;
  v = q;
  apply_reflectors(reflectors, factors, n - 1, 1, v);
  return Outcome::Fine;
}

void qr_in_place(const Matrix& a, const Matrix& q) {
  View r = view_of(a);
  View orthogonal = view_of(q);
  const double scale = scale_down(r);
  if (std::isnan(scale)) {
    r.setConstant(kNaN);
    orthogonal.setConstant(kNaN);
  } else {
    const Reflectors reflectors = factorize(r);
    orthogonal.setIdentity();
    apply_reflectors(reflectors.packed, reflectors.factors, reflectors.factors.size(), 0,
                     orthogonal);
    r = reflectors.packed * scale;
  }
  r.triangularView<Eigen::StrictlyLower>().setZero();
}

namespace {

/// Columns shorter than this fraction of the longest one are rounding errors.
constexpr double kShort = kEpsilon;
constexpr int kMostSweeps = 60;

/// One-sided Jacobi: rotates pairs of columns of w and v until all columns of w that are not short
/// are orthogonal.
bool orthogonalize(View w, View v) {
  const Index n = w.cols();
  if (n == 0) return true;
  const double close = kEpsilon * std::sqrt(static_cast<double>(n));
  bool turned = true;
  for (int sweep = 0; turned && sweep < kMostSweeps; ++sweep) {
    turned = false;
    Vector squares = w.colwise().squaredNorm();
    const double least = kShort * kShort * squares.maxCoeff();
    for (Index i = 0; i < n; ++i) {
      for (Index j = i + 1; j < n && squares(i) >= least; ++j) {
        if (squares(j) < least) continue;
        if (j % kPanel == 0) may_give_up(w.rows() * kPanel);
        const double product = w.col(i).dot(w.col(j));
        if (std::fabs(product) <= close * std::sqrt(squares(i)) * std::sqrt(squares(j))) {
          continue;
        }
        const double slope = (squares(j) - squares(i)) / (2.0 * product);
        const double tangent =
            std::copysign(1.0, slope) / (std::fabs(slope) + std::hypot(1.0, slope));
        const double cosine = 1.0 / std::hypot(1.0, tangent);
        const Eigen::JacobiRotation<double> rotation(cosine, cosine * tangent);
        w.applyOnTheRight(i, j, rotation);
        if (v.size() != 0) v.applyOnTheRight(i, j, rotation);
        squares(i) = w.col(i).squaredNorm();
        squares(j) = w.col(j).squaredNorm();
        turned = true;
      }
    }
  }
  return !turned;
}

/// Completes the first `given` orthonormal columns of the square u to a basis.
void complete(Part u, Index given) {
  if (given == u.cols()) return;
  Dense first = u.leftCols(given);
  const Reflectors reflectors = factorize(View(first.data(), first.rows(), given));
  Dense basis = Dense::Identity(u.rows(), u.cols());
  apply_reflectors(reflectors.packed, reflectors.factors, given, 0,
                   View(basis.data(), basis.rows(), basis.cols()));
  u.rightCols(u.cols() - given) = basis.rightCols(u.cols() - given);
}

}  // namespace

Outcome svd_in_place(const Matrix& a, double* values, const Matrix& u, const Matrix& v) {
  View view = view_of(a);
  const double scale = scale_down(view);
  if (std::isnan(scale)) return Outcome::NotFinite;
  const bool vectors = u.data != nullptr;
  const Index n = a.cols;
  const Reflectors reflectors = factorize(view);
  Dense r = reflectors.packed.topRows(n);
  r.triangularView<Eigen::StrictlyLower>().setZero();
  // The eigenvectors of R^T R are V up to rounding, so few rotations are left.
  Dense turns = Dense::Zero(n, n);
  Dense transposed = r.transpose();
  add_product(turns, transposed, r);
  Vector squares(n);
  const Outcome outcome = eigh_in_place({turns.data(), n, n}, squares.data(), true);
  if (outcome != Outcome::Fine) return outcome;
  turns = turns.rowwise().reverse().eval();
  Dense w = Dense::Zero(n, n);
  add_product(w, r, turns);
  if (!orthogonalize(View(w.data(), n, n), View(turns.data(), n, vectors ? n : 0))) {
    return Outcome::NoConvergence;
  }
  Vector norms = w.colwise().norm();
  if (vectors) view_of(u).setIdentity();
  Index rank = 0;
  for (Index k = 0; k < n; ++k) {
    // Selection sort: the columns are nearly sorted, and std::sort would add 4 KB of code.
    Index from = 0;
    norms.tail(n - k).maxCoeff(&from);
    from += k;
    std::swap(norms(k), norms(from));
    values[k] = norms(k) * scale;
    if (!vectors) continue;
    w.col(k).swap(w.col(from));
    turns.col(k).swap(turns.col(from));
    // Twice the limit: a column just below it was not rotated and must not count.
    if (norms(k) <= 2.0 * kShort * norms(0)) continue;
    view_of(u).col(k).head(n) = w.col(k) / norms(k);
    ++rank;
  }
  if (!vectors) return Outcome::Fine;
  view_of(v) = turns;
  complete(view_of(u).topLeftCorner(n, n), rank);
  for (Index k = rank; k < n; ++k) {
    if (view_of(u).col(k).head(n).dot(w.col(k)) < 0.0) view_of(u).col(k) *= -1.0;
  }
  apply_reflectors(reflectors.packed, reflectors.factors, n, 0, view_of(u));
  return Outcome::Fine;
}

}  // namespace baregrad::kernels::linalg

// baregrad.linalg: the linalg extension of the array API.
#include "baregrad/linalg.h"

#include <string>
#include <variant>

#include "baregrad/error.h"
#include "core/message.h"
#include "functions.h"

namespace baregrad::python {
namespace {

using Unary = Tensor (*)(const Tensor&);
using Truncated = Tensor (*)(const Tensor&, const std::optional<Operand>&);
using Order = std::variant<double, std::string>;

nb::handle g_eigh;
nb::handle g_qr;
nb::handle g_slogdet;
nb::handle g_svd;

void take_result_types(nb::module_& m) {
  g_eigh = result_type_of(m, "EighResult");
  g_qr = result_type_of(m, "QRResult");
  g_slogdet = result_type_of(m, "SlogdetResult");
  g_svd = result_type_of(m, "SVDResult");
}

/// Decompositions always take long enough to release the lock.
template <class F>
decltype(auto) decompose(F&& f) {
  return unlocked_if(true, std::forward<F>(f));
}

std::string described(const char* name, const char* doc) {
  return documented((std::string("linalg.") + name).c_str(), doc);
}

void def_unary(nb::module_& m, const char* name, Unary op, const char* doc) {
  m.def(
      name, [op](const Tensor& x) { return decompose([&] { return op(x); }); }, nb::arg(),
      nb::sig(signature(name, "x: Tensor, /").c_str()), described(name, doc).c_str());
}

void def_truncated(nb::module_& m, const char* name, Truncated op, const char* doc) {
  m.def(
      name,
      [op](const Tensor& x, const std::optional<Operand>& rtol) {
        return decompose([&] { return op(x, rtol); });
      },
      nb::arg(), nb::kw_only(), nb::arg("rtol") = nb::none(),
      nb::sig(signature(name, "x: Tensor, /, *, rtol: Operand | None = None").c_str()),
      described(name, doc).c_str());
}

linalg::QrMode qr_mode(const std::string& mode) {
  if (mode == "reduced") return linalg::QrMode::Reduced;
  if (mode == "complete") return linalg::QrMode::Complete;
  throw ValueError(message("qr: mode is \"reduced\" or \"complete\", not \"", mode, "\""));
}

Tensor matrix_norm_of(const Tensor& x, bool keepdims, const Order& order) {
  const auto work = [&](const auto& ord) {
    return decompose([&] { return linalg::matrix_norm(x, keepdims, ord); });
  };
  return std::visit(work, order);
}

void bind_decompositions(nb::module_& m) {
  m.def(
      "cholesky",
      [](const Tensor& x, bool upper) {
        return decompose([&] { return linalg::cholesky(x, upper); });
      },
      nb::arg(), nb::kw_only(), nb::arg("upper") = false,
      nb::sig(signature("cholesky", "x: Tensor, /, *, upper: bool = False").c_str()),
      described("cholesky",
                "Lower triangular L with x = L L^T, or upper U with x = U^T U.\n\nOnly that "
                "triangle is read. ValueError where a matrix is not positive definite.")
          .c_str());
  m.def(
      "eigh",
      [](const Tensor& x) {
        const linalg::Eigh r = decompose([&] { return linalg::eigh(x); });
        return g_eigh(r.eigenvalues, r.eigenvectors);
      },
      nb::arg(), nb::sig(signature("eigh", "x: Tensor, /", "baregrad.results.EighResult").c_str()),
      described("eigh",
                "Ascending eigenvalues of symmetric matrices, and eigenvectors as columns; the "
                "lower triangle is read.")
          .c_str());
  m.def(
      "qr",
      [](const Tensor& x, const std::string& mode) {
        const linalg::QrMode how = qr_mode(mode);
        const linalg::Qr r = decompose([&] { return linalg::qr(x, how); });
        return g_qr(r.Q, r.R);
      },
      nb::arg(), nb::kw_only(), nb::arg("mode") = "reduced",
      nb::sig(signature("qr", "x: Tensor, /, *, mode: str = 'reduced'", "baregrad.results.QRResult")
                  .c_str()),
      described("qr", "x = Q R, Q with orthonormal columns, R upper triangular.").c_str());
  m.def(
      "slogdet",
      [](const Tensor& x) {
        const linalg::Slogdet r = decompose([&] { return linalg::slogdet(x); });
        return g_slogdet(r.sign, r.logabsdet);
      },
      nb::arg(),
      nb::sig(signature("slogdet", "x: Tensor, /", "baregrad.results.SlogdetResult").c_str()),
      described("slogdet", "Sign and logarithm of the magnitude of the determinant.").c_str());
  m.def(
      "svd",
      [](const Tensor& x, bool full_matrices) {
        const linalg::Svd r = decompose([&] { return linalg::svd(x, full_matrices); });
        return g_svd(r.U, r.S, r.Vh);
      },
      nb::arg(), nb::kw_only(), nb::arg("full_matrices") = true,
      nb::sig(signature("svd", "x: Tensor, /, *, full_matrices: bool = True",
                        "baregrad.results.SVDResult")
                  .c_str()),
      described("svd", "x = U diag(S) Vh, S descending.").c_str());
  def_unary(m, "svdvals", &linalg::svdvals, "Singular values, descending.");
  def_unary(m, "eigvalsh", &linalg::eigvalsh, "Ascending eigenvalues of symmetric matrices.");
}

void bind_solving(nb::module_& m) {
  def_unary(m, "det", &linalg::det, "Determinant.");
  def_unary(m, "inv", &linalg::inv, "Inverse; ValueError where a matrix is exactly singular.");
  m.def(
      "solve",
      [](const Tensor& a, const Tensor& b) {
        return decompose([&] { return linalg::solve(a, b); });
      },
      nb::arg(), nb::arg(), nb::sig(signature("solve", "x1: Tensor, x2: Tensor, /").c_str()),
      described("solve", "y with x1 y = x2; x2 is one vector if 1-d, else matrices.").c_str());
  m.def(
      "matrix_power",
      [](const Tensor& x, std::int64_t n) {
        return decompose([&] { return linalg::matrix_power(x, n); });
      },
      nb::arg(), nb::arg(), nb::sig(signature("matrix_power", "x: Tensor, n: int, /").c_str()),
      described("matrix_power", "x multiplied by itself n times; of the inverse for a negative n.")
          .c_str());
  def_truncated(m, "pinv", &linalg::pinv,
                "Pseudo-inverse; singular values up to rtol times the greatest count as zero.");
  def_truncated(m, "matrix_rank", &linalg::matrix_rank,
                "The number of singular values greater than rtol times the greatest.");
}

void bind_norms(nb::module_& m) {
  m.def("matrix_norm", &matrix_norm_of, nb::arg(), nb::kw_only(), nb::arg("keepdims") = false,
        nb::arg("ord") = "fro",
        nb::sig(signature("matrix_norm",
                          "x: Tensor, /, *, keepdims: bool = False, ord: int | float | str = 'fro'")
                    .c_str()),
        described("matrix_norm",
                  "Norm of each matrix: \"fro\", \"nuc\", 1, -1, 2, -2, infinity or -infinity.")
            .c_str());
  m.def(
      "vector_norm",
      [](const Tensor& x, const Axes& axes, bool keepdims, double ord) {
        return decompose([&] { return linalg::vector_norm(x, axes, keepdims, ord); });
      },
      nb::arg(), nb::kw_only(), nb::arg("axis") = nb::none(), nb::arg("keepdims") = false,
      nb::arg("ord") = 2,
      nb::sig(
          signature("vector_norm",
                    "x: Tensor, /, *, axis: Axes = None, keepdims: bool = False, ord: float = 2")
              .c_str()),
      described("vector_norm", "(sum |x|^ord)^(1/ord) over the axes, all by default.").c_str());
}

void bind_others(nb::module_& m) {
  m.def(
      "diagonal", [](const Tensor& x, Offset offset) { return linalg::diagonal(x, offset.value); },
      nb::arg(), nb::kw_only(), nb::arg("offset") = 0,
      nb::sig(signature("diagonal", "x: Tensor, /, *, offset: int = 0").c_str()),
      described("diagonal", "A view of the diagonal of each matrix; a positive offset is above.")
          .c_str());
  m.def(
      "trace",
      [](const Tensor& x, Offset offset, DTypeOption dtype) {
        return unlocked(x.numel(), [&] { return linalg::trace(x, offset.value, dtype); });
      },
      nb::arg(), nb::kw_only(), nb::arg("offset") = 0, nb::arg("dtype") = nb::none(),
      nb::sig(signature("trace", "x: Tensor, /, *, offset: int = 0, dtype: DType | None = None")
                  .c_str()),
      described("trace", "Sum of the diagonal; dtypes as for sum.").c_str());
  m.def(
      "cross",
      [](const Tensor& x, const Tensor& y, std::int64_t axis) {
        return unlocked(work_of(x, y), [&] { return linalg::cross(x, y, axis); });
      },
      nb::arg(), nb::arg(), nb::kw_only(), nb::arg("axis") = -1,
      nb::sig(signature("cross", "x1: Tensor, x2: Tensor, /, *, axis: int = -1").c_str()),
      described("cross", "Cross products of vectors of three along an axis.").c_str());
}

}  // namespace

void bind_linalg(nb::module_& m) {
  nb::module_ sub = m.def_submodule("linalg", "Linear algebra of the array API standard.");
  take_result_types(sub);
  bind_decompositions(sub);
  bind_solving(sub);
  bind_norms(sub);
  bind_others(sub);
  for (const char* name : {"matmul", "matrix_transpose", "outer", "tensordot", "vecdot"}) {
    sub.attr(name) = m.attr(name);
  }
}

}  // namespace baregrad::python

// Products over matrices and vectors.
#include "ops_products.h"

#include <string>
#include <utility>
#include <variant>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/message.h"
#include "functions.h"
#include "tensor_slots.h"

namespace baregrad::python {
namespace {

using Product = Tensor (*)(const Tensor&, const Tensor&);
using TensordotAxes = std::variant<std::int64_t, std::pair<Dims, Dims>>;

/// A number of axes, or a pair of lists. Converted here because nanobind's casters of pairs
/// suppress errors of __index__.
TensordotAxes tensordot_axes(nb::handle object) {
  Dims count;
  if (PyIndex_Check(object.ptr()) && dims_from(object.ptr(), count)) return count[0];
  const bool is_pair = (nb::isinstance<nb::tuple>(object) || nb::isinstance<nb::list>(object)) &&
                       nb::len(object) == 2;
  std::pair<Dims, Dims> axes;
  if (!is_pair || !dims_from(nb::object(object[0]).ptr(), axes.first) ||
      !dims_from(nb::object(object[1]).ptr(), axes.second)) {
    throw DTypeError("tensordot: axes are an integer or two sequences of integers");
  }
  return axes;
}

void check_ndims(const Tensor& a, int a_ndim, const Tensor& b, int b_ndim, const char* who) {
  if (a.ndim() == a_ndim && b.ndim() == b_ndim) return;
  throw ShapeError(message(who, ": wanted a ", a_ndim, "-d and a ", b_ndim, "-d tensor, got ",
                           describe(a), " and ", describe(b), "; matmul broadcasts"));
}

void def_product(nb::module_& m, const char* name, Product op, const char* doc) {
  m.def(
      name,
      [op](const Tensor& a, const Tensor& b) {
        return unlocked_if(is_long_product(a, b), [&] { return op(a, b); });
      },
      nb::arg(), nb::arg(), nb::sig(signature(name, "x1: Tensor, x2: Tensor, /").c_str()),
      documented(name, doc).c_str());
}

void bind_sums_of_products(nb::module_& m) {
  m.def(
      "vecdot",
      [](const Tensor& x, const Tensor& y, std::int64_t axis) {
        return unlocked(work_of(x, y), [&] { return vecdot(x, y, axis); });
      },
      nb::arg(), nb::arg(), nb::kw_only(), nb::arg("axis") = -1,
      nb::sig(signature("vecdot", "x1: Tensor, x2: Tensor, /, *, axis: int = -1").c_str()),
      documented("vecdot", "Sum of the products along an axis, broadcast over the others.")
          .c_str());
  const auto over = [](const Tensor& a, const Tensor& b, nb::handle listed) {
    const TensordotAxes axes = tensordot_axes(listed);
    return unlocked_if(true, [&] {
      if (const auto* count = std::get_if<std::int64_t>(&axes)) return tensordot(a, b, *count);
      const auto& [of_a, of_b] = std::get<std::pair<Dims, Dims>>(axes);
      return tensordot(a, b, of_a, of_b);
    });
  };
  m.def("tensordot", over, nb::arg(), nb::arg(), nb::kw_only(), nb::arg("axes") = 2,
        nb::sig(signature("tensordot",
                          "x1: Tensor, x2: Tensor, /, *, axes: int | "
                          "tuple[collections.abc.Sequence[int], collections.abc.Sequence[int]] = 2")
                    .c_str()),
        documented("tensordot",
                   "Sum of products over axes: the last of x1 with the first of x2, or the pairs "
                   "listed.")
            .c_str());
  m.def("tensordot", over, nb::arg(), nb::arg(), nb::arg("dims") = 2,
        nb::sig(signature("tensordot",
                          "x1: Tensor, x2: Tensor, /, dims: int | "
                          "tuple[collections.abc.Sequence[int], collections.abc.Sequence[int]] = 2")
                    .c_str()));
}

}  // namespace

Tensor mm(const Tensor& a, const Tensor& b) {
  check_ndims(a, 2, b, 2, "mm");
  return in_name_of("mm", [&] { return matmul(a, b); });
}
Tensor mv(const Tensor& a, const Tensor& b) {
  check_ndims(a, 2, b, 1, "mv");
  return in_name_of("mv", [&] { return matmul(a, b); });
}
Tensor dot(const Tensor& a, const Tensor& b) {
  check_ndims(a, 1, b, 1, "dot");
  return in_name_of("dot", [&] { return vecdot(a, b); });
}

void bind_products(nb::module_& m) {
  def_product(m, "matmul", &matmul,
              "Matrix product over the last two axes, broadcast over the others.");
  def_product(m, "outer", &outer, "All products of the elements of two vectors.");
  def_product(m, "mm", &mm, "Product of two matrices.");
  def_product(m, "mv", &mv, "Matrix times vector.");
  def_product(m, "dot", &dot, "Sum of the products of two vectors.");
  def_product(m, "bmm", &bmm, "Matrix products of two stacks of as many matrices.");
  bind_sums_of_products(m);
  m.def(
      "einsum",
      [](const std::string& equation, const nb::args& operands) {
        const std::vector<Tensor> tensors = tensors_in(operands, "einsum");
        return unlocked_if(true, [&] { return einsum(equation, tensors); });
      },
      nb::arg("equation"), nb::arg("operands"),
      nb::sig("def einsum(equation: str, *operands: Tensor) -> Tensor"),
      documented(
          "einsum",
          "Sums of products in Einstein's notation.\n\nLetters name axes, \"...\" those that "
          "broadcast; letters missing on the right are summed over.")
          .c_str());
  m.def(
      "addmm",
      [](const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta,
         const Scalar& alpha) {
        return unlocked_if(is_long_product(a, b), [&] { return addmm(x, a, b, beta, alpha); });
      },
      nb::arg(), nb::arg("mat1"), nb::arg("mat2"), nb::kw_only(), nb::arg("beta") = 1,
      nb::arg("alpha") = 1,
      nb::sig(signature("addmm",
                        "x: Tensor, /, mat1: Tensor, mat2: Tensor, *, beta: int | float = 1, "
                        "alpha: int | float = 1")
                  .c_str()),
      documented("addmm", "beta * x + alpha * (mat1 @ mat2)").c_str());
}

}  // namespace baregrad::python

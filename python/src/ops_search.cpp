// Indexing by positions, order, search, sets, and comparison of whole tensors.
#include <string>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/message.h"
#include "functions.h"

namespace baregrad::python {
namespace {

nb::handle g_pair;
nb::handle g_unique_all;
nb::handle g_unique_counts;
nb::handle g_unique_inverse;

void take_result_types(nb::module_& m) {
  g_pair = result_type_of(m, "ValuesAndIndices");
  g_unique_all = result_type_of(m, "UniqueAllResult");
  g_unique_counts = result_type_of(m, "UniqueCountsResult");
  g_unique_inverse = result_type_of(m, "UniqueInverseResult");
}

bool is_right(const std::string& side) {
  if (side == "right") return true;
  if (side == "left") return false;
  throw ValueError(message("searchsorted: side is \"left\" or \"right\", not \"", side, "\""));
}

Tensor searched(const Tensor& sorted, const Operand& values, bool right,
                const std::optional<Tensor>& sorter) {
  return in_name_of("searchsorted", [&] {
    const Tensor line = sorter ? take_along_axis(sorted, *sorter, -1) : sorted;
    return searchsorted(line, values, right);
  });
}

/// |x - y| <= atol + rtol |y|, in float64; an infinity is close only to itself.
Tensor are_close(const Tensor& x, const Tensor& y, double rtol, double atol, bool equal_nan) {
  const Tensor a = astype(x, DType::Float64, false);
  const Tensor b = astype(y, DType::Float64, false);
  const Tensor near = less_equal(abs(a - b), abs(b) * rtol + atol);
  Tensor close = logical_or(equal(a, b), logical_and(near, isfinite(b)));
  if (equal_nan) close = logical_or(close, logical_and(isnan(a), isnan(b)));
  return close;
}

bool are_equal(const Tensor& x, const Tensor& y, bool equal_nan) {
  if (!(x.shape() == y.shape())) return false;
  Tensor same = equal(x, y);
  if (equal_nan) same = logical_or(same, logical_and(isnan(x), isnan(y)));
  return all(same).item<bool>();
}

void bind_picking(nb::module_& m) {
  m.def(
      "take",
      [](const Tensor& x, const Tensor& indices, std::optional<std::int64_t> axis) {
        return unlocked_if(true, [&] { return take(x, indices, axis); });
      },
      nb::arg(), nb::arg(), nb::kw_only(), nb::arg("axis") = nb::none(),
      nb::sig(
          signature("take", "x: Tensor, indices: Tensor, /, *, axis: int | None = None").c_str()),
      documented("take", "Slices picked by position along an axis; of the flat tensor without one.")
          .c_str());
  const auto along = [](const Tensor& x, const Tensor& indices, std::int64_t axis) {
    return unlocked(indices.numel(), [&] { return take_along_axis(x, indices, axis); });
  };
  m.def(
      "take_along_axis", along, nb::arg(), nb::arg(), nb::kw_only(), nb::arg("axis") = -1,
      nb::sig(
          signature("take_along_axis", "x: Tensor, indices: Tensor, /, *, axis: int = -1").c_str()),
      documented("take_along_axis",
                 "Elements picked by position along an axis; the other axes broadcast.")
          .c_str());
  m.def(
      "take_along_dim",
      [along](const Tensor& x, const Tensor& indices, std::optional<std::int64_t> dim) {
        return in_name_of("take_along_dim", [&] {
          if (dim) return along(x, indices, *dim);
          return along(reshape(x, {x.numel()}), reshape(indices, {indices.numel()}), 0);
        });
      },
      nb::arg(), nb::arg("indices"), nb::arg("dim") = nb::none(),
      nb::sig(signature("take_along_dim", "x: Tensor, /, indices: Tensor, dim: int | None = None")
                  .c_str()),
      documented("take_along_dim",
                 "Elements picked by position along an axis; the other axes broadcast.\n\nWithout "
                 "an axis both tensors are taken as flat.")
          .c_str());
  m.def(
      "index_select",
      [](const Tensor& x, std::int64_t dim, const Tensor& index) {
        return unlocked_if(true, [&] { return index_select(x, dim, index); });
      },
      nb::arg(), nb::arg("dim"), nb::arg("index"),
      nb::sig(signature("index_select", "x: Tensor, /, dim: int, index: Tensor").c_str()),
      documented("index_select", "Slices picked by position along an axis.").c_str());
  m.def(
      "gather",
      [](const Tensor& x, std::int64_t dim, const Tensor& index) {
        return unlocked(index.numel(), [&] { return gather(x, dim, index); });
      },
      nb::arg(), nb::arg("dim"), nb::arg("index"),
      nb::sig(signature("gather", "x: Tensor, /, dim: int, index: Tensor").c_str()),
      documented("gather", "Elements picked by position along an axis.").c_str());
  m.def(
      "scatter",
      [](const Tensor& x, std::int64_t dim, const Tensor& index, const Operand& src) {
        return unlocked(x.numel(), [&] { return scatter(x, dim, index, src); });
      },
      nb::arg(), nb::arg("dim"), nb::arg("index"), nb::arg("src"),
      nb::sig(signature("scatter", "x: Tensor, /, dim: int, index: Tensor, src: Operand").c_str()),
      documented("scatter", "A copy with elements replaced by position along an axis.").c_str());
  m.def(
      "scatter_add",
      [](const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& src) {
        return unlocked(x.numel(), [&] { return scatter_add(x, dim, index, src); });
      },
      nb::arg(), nb::arg("dim"), nb::arg("index"), nb::arg("src"),
      nb::sig(
          signature("scatter_add", "x: Tensor, /, dim: int, index: Tensor, src: Tensor").c_str()),
      documented("scatter_add", "A copy with elements added to by position along an axis.")
          .c_str());
  m.def(
      "masked_fill",
      [](const Tensor& x, const Tensor& mask, const Operand& value) {
        return unlocked(work_of(x, mask), [&] { return masked_fill(x, mask, value); });
      },
      nb::arg(), nb::arg("mask"), nb::arg("value"),
      nb::sig(signature("masked_fill", "x: Tensor, /, mask: Tensor, value: Operand").c_str()),
      documented("masked_fill", "A copy with `value` where the mask holds.").c_str());
  m.def(
      "masked_select",
      [](const Tensor& x, const Tensor& mask) {
        return unlocked(work_of(x, mask), [&] { return masked_select(x, mask); });
      },
      nb::arg(), nb::arg("mask"),
      nb::sig(signature("masked_select", "x: Tensor, /, mask: Tensor").c_str()),
      documented("masked_select", "The elements where the mask holds, as one axis.").c_str());
  m.def(
      "nonzero",
      [](const Tensor& x) { return tuple_of(unlocked(x.numel(), [&] { return nonzero(x); })); },
      nb::arg(), nb::sig(signature("nonzero", "x: Tensor, /", "tuple[Tensor, ...]").c_str()),
      documented("nonzero", "Positions of the elements that are not zero: one tensor per axis.")
          .c_str());
}

void bind_order(nb::module_& m) {
  m.def(
      "sort",
      [](const Tensor& x, std::int64_t axis, bool descending, bool stable) {
        return unlocked(x.numel(), [&] { return sort(x, axis, descending, stable); });
      },
      nb::arg(), nb::kw_only(), nb::arg("axis") = -1, nb::arg("descending") = false,
      nb::arg("stable") = true,
      nb::sig(signature(
                  "sort",
                  "x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True")
                  .c_str()),
      documented("sort",
                 "Values in order along an axis; NaN is the greatest.\n\nIn PyTorch's "
                 "spelling, sort(x, dim), the pair of values and where they were.")
          .c_str());
  m.def(
      "sort",
      [](const Tensor& x, std::int64_t dim, bool descending, bool) {
        ValuesAndIndices found = unlocked(x.numel(), [&] {
          return in_name_of("sort", [&] { return sort_with_indices(x, dim, descending); });
        });
        return value_pair(std::move(found.values), std::move(found.indices));
      },
      nb::arg(), nb::arg("dim"), nb::arg("descending") = false, nb::arg("stable") = true,
      nb::sig(signature("sort",
                        "x: Tensor, /, dim: int, descending: bool = False, stable: bool = True",
                        "baregrad.results.ValuesAndIndices")
                  .c_str()));
  const auto positions = [](const Tensor& x, std::int64_t axis, bool descending, bool stable) {
    return unlocked(x.numel(), [&] { return argsort(x, axis, descending, stable); });
  };
  m.def(
      "argsort", positions, nb::arg(), nb::kw_only(), nb::arg("axis") = -1,
      nb::arg("descending") = false, nb::arg("stable") = true,
      nb::sig(signature(
                  "argsort",
                  "x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True")
                  .c_str()),
      documented("argsort", "Positions that put an axis in order; NaN is the greatest.").c_str());
  m.def("argsort", positions, nb::arg(), nb::arg("dim"), nb::arg("descending") = false,
        nb::arg("stable") = true,
        nb::sig(signature("argsort",
                          "x: Tensor, /, dim: int, descending: bool = False, stable: bool = True")
                    .c_str()));
  for (const Spelling& by : {kTorch, kArrayApi}) {
    m.def(
        "topk",
        [](const Tensor& x, std::int64_t k, std::int64_t axis, bool largest) {
          ValuesAndIndices found = unlocked(x.numel(), [&] { return topk(x, k, axis, largest); });
          return value_pair(std::move(found.values), std::move(found.indices));
        },
        nb::arg(), nb::arg("k"), nb::arg(by.axis) = -1, nb::arg("largest") = true,
        nb::sig(signature("topk",
                          std::string("x: Tensor, /, k: int, ") + by.axis +
                              ": int = -1, largest: bool = True",
                          "baregrad.results.ValuesAndIndices")
                    .c_str()),
        documented(by.axis == kTorch.axis ? "topk" : "",
                   "The k greatest (or least) along an axis, in order, and their positions.")
            .c_str());
  }
  m.def(
      "searchsorted",
      [](const Tensor& sorted, const Operand& values, const std::string& side,
         const std::optional<Tensor>& sorter) {
        const bool right = is_right(side);
        return unlocked(work_of(sorted) + work_of(values),
                        [&] { return searched(sorted, values, right, sorter); });
      },
      nb::arg(), nb::arg(), nb::kw_only(), nb::arg("side") = "left", nb::arg("sorter") = nb::none(),
      nb::sig(signature(
                  "searchsorted",
                  "x1: Tensor, x2: Operand, /, *, side: str = 'left', sorter: Tensor | None = None")
                  .c_str()),
      documented("searchsorted",
                 "Where values (second argument) would be inserted into a sorted sequence "
                 "(first).\n\nside=\"right\" is after equal ones; `sorter` are positions that put "
                 "the sequence in order.")
          .c_str());
  m.def(
      "searchsorted",
      [](const Tensor& sorted, const Operand& values, bool right) {
        return unlocked(work_of(sorted) + work_of(values),
                        [&] { return searchsorted(sorted, values, right); });
      },
      nb::arg(), nb::arg(), nb::kw_only(), nb::arg("right"),
      nb::sig(signature("searchsorted", "x1: Tensor, x2: Operand, /, *, right: bool").c_str()));
}

void bind_sets(nb::module_& m) {
  m.def(
      "unique_all",
      [](const Tensor& x) {
        const UniqueAll u = unlocked(x.numel(), [&] { return unique_all(x); });
        return g_unique_all(u.values, u.indices, u.inverse, u.counts);
      },
      nb::arg(),
      nb::sig(signature("unique_all", "x: Tensor, /", "baregrad.results.UniqueAllResult").c_str()),
      documented("unique_all",
                 "Sorted distinct values, their first positions, where each element went, and "
                 "counts; each NaN is distinct.")
          .c_str());
  m.def(
      "unique_counts",
      [](const Tensor& x) {
        const UniqueCounts u = unlocked(x.numel(), [&] { return unique_counts(x); });
        return g_unique_counts(u.values, u.counts);
      },
      nb::arg(),
      nb::sig(signature("unique_counts", "x: Tensor, /", "baregrad.results.UniqueCountsResult")
                  .c_str()),
      documented("unique_counts", "Sorted distinct values, and how often each is there.").c_str());
  m.def(
      "unique_inverse",
      [](const Tensor& x) {
        const UniqueInverse u = unlocked(x.numel(), [&] { return unique_inverse(x); });
        return g_unique_inverse(u.values, u.inverse);
      },
      nb::arg(),
      nb::sig(signature("unique_inverse", "x: Tensor, /", "baregrad.results.UniqueInverseResult")
                  .c_str()),
      documented("unique_inverse", "Sorted distinct values, and which of them each element is.")
          .c_str());
  m.def(
      "unique_values",
      [](const Tensor& x) { return unlocked(x.numel(), [&] { return unique_values(x); }); },
      nb::arg(), nb::sig(signature("unique_values", "x: Tensor, /").c_str()),
      documented("unique_values", "Sorted distinct values; each NaN is distinct.").c_str());
}

void bind_comparison(nb::module_& m) {
  m.def(
      "isclose",
      [](const Tensor& x, const Tensor& y, double rtol, double atol, bool equal_nan) {
        return unlocked(work_of(x, y), [&] {
          return in_name_of("isclose", [&] { return are_close(x, y, rtol, atol, equal_nan); });
        });
      },
      nb::arg(), nb::arg(), nb::arg("rtol") = 1e-5, nb::arg("atol") = 1e-8,
      nb::arg("equal_nan") = false,
      nb::sig(signature("isclose",
                        "x1: Tensor, x2: Tensor, /, rtol: float = 1e-05, atol: float = 1e-08, "
                        "equal_nan: bool = False")
                  .c_str()),
      documented("isclose", "True where |x1 - x2| <= atol + rtol * |x2|.").c_str());
  m.def(
      "allclose",
      [](const Tensor& x, const Tensor& y, double rtol, double atol, bool equal_nan) {
        return unlocked(work_of(x, y), [&] {
          return in_name_of(
              "allclose", [&] { return all(are_close(x, y, rtol, atol, equal_nan)).item<bool>(); });
        });
      },
      nb::arg(), nb::arg(), nb::arg("rtol") = 1e-5, nb::arg("atol") = 1e-8,
      nb::arg("equal_nan") = false,
      nb::sig(signature("allclose",
                        "x1: Tensor, x2: Tensor, /, rtol: float = 1e-05, atol: float = 1e-08, "
                        "equal_nan: bool = False",
                        "bool")
                  .c_str()),
      documented("allclose", "Whether |x1 - x2| <= atol + rtol * |x2| everywhere.").c_str());
  m.def(
      "array_equal",
      [](const Tensor& x, const Tensor& y, bool equal_nan) {
        return unlocked(work_of(x), [&] { return are_equal(x, y, equal_nan); });
      },
      nb::arg(), nb::arg(), nb::arg("equal_nan") = false,
      nb::sig(signature("array_equal", "x1: Tensor, x2: Tensor, /, equal_nan: bool = False", "bool")
                  .c_str()),
      documented("array_equal", "Whether two tensors have one shape and equal elements.").c_str());
}

}  // namespace

ValuePair value_pair(Tensor values, Tensor indices) {
  return nb::borrow<ValuePair>(g_pair(std::move(values), std::move(indices)));
}

void bind_search(nb::module_& m) {
  take_result_types(m);
  bind_picking(m);
  bind_order(m);
  bind_sets(m);
  bind_comparison(m);
}

}  // namespace baregrad::python

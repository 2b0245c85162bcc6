// Reductions, scans and softmax, each in the array API's spelling (axis, keepdims, by name only)
// and in PyTorch's (dim, keepdim).
#include <algorithm>
#include <string>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/message.h"
#include "functions.h"
#include "ops/widened.h"

namespace baregrad::python {
namespace {

using Scan = Tensor (*)(const Tensor&, std::int64_t, DTypeOption);

void def_reduce_by_axis(nb::module_& m, const char* name, Reduce op, const char* doc) {
  m.def(
      name,
      [op](const Tensor& x, const Axes& axes, bool keep) {
        return unlocked(x.numel(), [&] { return op(x, axes, keep); });
      },
      nb::arg(), nb::kw_only(), nb::arg("axis") = nb::none(), nb::arg("keepdims") = false,
      nb::sig(
          signature(name, "x: Tensor, /, *, axis: Axes = None, keepdims: bool = False").c_str()),
      documented(name, doc).c_str());
}

void def_reduce(nb::module_& m, const char* name, Reduce op, const char* doc) {
  def_reduce_by_axis(m, name, op, doc);
  m.def(
      name,
      [op](const Tensor& x, const Axes& axes, bool keep) {
        return unlocked(x.numel(), [&] { return op(x, axes, keep); });
      },
      nb::arg(), nb::arg("dim") = nb::none(), nb::arg("keepdim") = false,
      nb::sig(signature(name, "x: Tensor, /, dim: Axes = None, keepdim: bool = False").c_str()));
}

void def_reduce_to(nb::module_& m, const char* name, ReduceTo op, const char* doc) {
  m.def(
      name,
      [op](const Tensor& x, const Axes& axes, DTypeOption dtype, bool keep) {
        return unlocked(x.numel(), [&] { return op(x, axes, keep, dtype); });
      },
      nb::arg(), nb::kw_only(), nb::arg("axis") = nb::none(), nb::arg("dtype") = nb::none(),
      nb::arg("keepdims") = false,
      nb::sig(signature(name,
                        "x: Tensor, /, *, axis: Axes = None, dtype: DType | None = None, "
                        "keepdims: bool = False")
                  .c_str()),
      documented(name, doc).c_str());
  m.def(
      name,
      [op](const Tensor& x, const Axes& axes, bool keep, DTypeOption dtype) {
        return unlocked(x.numel(), [&] { return op(x, axes, keep, dtype); });
      },
      nb::arg(), nb::arg("dim") = nb::none(), nb::arg("keepdim") = false, nb::kw_only(),
      nb::arg("dtype") = nb::none(),
      nb::sig(signature(name,
                        "x: Tensor, /, dim: Axes = None, keepdim: bool = False, *, dtype: "
                        "DType | None = None")
                  .c_str()));
}

void def_position(nb::module_& m, const char* name, Position op, const char* doc) {
  const auto work = [op](const Tensor& x, std::optional<std::int64_t> axis, bool keep) {
    return unlocked(x.numel(), [&] { return op(x, axis, keep); });
  };
  m.def(name, work, nb::arg(), nb::kw_only(), nb::arg("axis") = nb::none(),
        nb::arg("keepdims") = false,
        nb::sig(signature(name, "x: Tensor, /, *, axis: int | None = None, keepdims: bool = False")
                    .c_str()),
        documented(name, doc).c_str());
  m.def(
      name, work, nb::arg(), nb::arg("dim") = nb::none(), nb::arg("keepdim") = false,
      nb::sig(
          signature(name, "x: Tensor, /, dim: int | None = None, keepdim: bool = False").c_str()));
}

/// The divisor is n - correction: 0 in the array API, 1 in PyTorch.
void def_spread(nb::module_& m, const char* name, Spread op, const char* doc) {
  const auto work = [op](const Tensor& x, const Axes& axes, double correction, bool keep) {
    return unlocked(x.numel(), [&] { return op(x, axes, correction, keep); });
  };
  m.def(name, work, nb::arg(), nb::kw_only(), nb::arg("axis") = nb::none(),
        nb::arg("correction") = 0.0, nb::arg("keepdims") = false,
        nb::sig(signature(name,
                          "x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, "
                          "keepdims: bool = False")
                    .c_str()),
        documented(name, doc).c_str());
  m.def(name, work, nb::arg(), nb::arg("dim"), nb::kw_only(), nb::arg("correction") = 1.0,
        nb::arg("keepdim") = false,
        nb::sig(signature(name,
                          "x: Tensor, /, dim: Axes, *, correction: float = 1.0, keepdim: bool "
                          "= False")
                    .c_str()));
  // PyTorch's older spelling: `unbiased` is a correction of 1, else 0.
  m.def(
      name, [work](const Tensor& x, bool unbiased) { return work(x, {}, unbiased ? 1 : 0, false); },
      nb::arg(), nb::arg("unbiased"),
      nb::sig(signature(name, "x: Tensor, /, unbiased: bool").c_str()));
  m.def(
      name,
      [work](const Tensor& x, const Axes& axes, bool unbiased, bool keep) {
        return work(x, axes, unbiased ? 1 : 0, keep);
      },
      nb::arg(), nb::arg("dim").none(), nb::arg("unbiased"), nb::arg("keepdim") = false,
      nb::sig(signature(name, "x: Tensor, /, dim: Axes, unbiased: bool, keepdim: bool = False")
                  .c_str()));
}

ValuesAndIndices with_positions(Position op, const Tensor& x, std::int64_t dim, bool keep) {
  // One pass finds the positions; the values, which have a gradient, are gathered by them.
  Tensor indices = op(x, dim, true);
  Tensor values = take_along_axis(x, indices, dim);
  if (keep || x.ndim() == 0) return {values, indices};
  return {squeeze(values, dim), squeeze(indices, dim)};
}

/// max(x, axis=...) gives values, max(x, dim) the pair of values and positions, as in PyTorch.
void def_extreme(nb::module_& m, const char* name, Reduce op, Position position, const char* doc) {
  def_reduce_by_axis(m, name, op, doc);
  m.def(
      name,
      [position, name](const Tensor& x, std::int64_t dim, bool keep) {
        ValuesAndIndices found = unlocked(x.numel(), [&] {
          return in_name_of(name, [&] { return with_positions(position, x, dim, keep); });
        });
        return value_pair(std::move(found.values), std::move(found.indices));
      },
      nb::arg(), nb::arg("dim"), nb::arg("keepdim") = false,
      nb::sig(signature(name, "x: Tensor, /, dim: int, keepdim: bool = False",
                        "baregrad.results.ValuesAndIndices")
                  .c_str()));
}

/// The axis; it may be omitted for a tensor with one axis.
std::int64_t scan_axis(const Tensor& x, std::optional<std::int64_t> axis, const char* who) {
  if (axis) return *axis;
  if (x.ndim() == 1) return 0;
  throw ValueError(message(who, ": an axis is needed for ", describe(x),
                           "; it can be left out for one dimension only"));
}

/// The results with `initial` in front.
Tensor scan_with_initial(Scan op, const Tensor& x, std::int64_t axis, DTypeOption dtype,
                         int initial) {
  const Tensor scanned = op(x, axis, dtype);
  Dims shape = scanned.shape();
  shape[static_cast<int>(axis < 0 ? axis + x.ndim() : axis)] = 1;
  return concat({full(shape, initial, scanned.dtype()), scanned}, axis);
}

/// `initial` is the empty sum or product.
void def_scan(nb::module_& m, const char* name, Scan op, int initial, const char* doc) {
  m.def(
      name,
      [=](const Tensor& x, std::optional<std::int64_t> axis, DTypeOption dtype,
          bool include_initial) {
        const std::int64_t along = scan_axis(x, axis, name);
        return unlocked(x.numel(), [&] {
          return in_name_of(name, [&] {
            return include_initial && x.ndim() > 0 ? scan_with_initial(op, x, along, dtype, initial)
                                                   : op(x, along, dtype);
          });
        });
      },
      nb::arg(), nb::kw_only(), nb::arg("axis") = nb::none(), nb::arg("dtype") = nb::none(),
      nb::arg("include_initial") = false,
      nb::sig(signature(name,
                        "x: Tensor, /, *, axis: int | None = None, dtype: DType | None = "
                        "None, include_initial: bool = False")
                  .c_str()),
      documented(name, doc).c_str());
}

/// PyTorch's short name.
void def_short_scan(nb::module_& m, const char* name, Scan op, const char* doc) {
  for (const Spelling& by : {kTorch, kArrayApi}) {
    m.def(
        name,
        [op, name](const Tensor& x, std::int64_t axis, DTypeOption dtype) {
          return unlocked(x.numel(),
                          [&] { return in_name_of(name, [&] { return op(x, axis, dtype); }); });
        },
        nb::arg(), nb::arg(by.axis), nb::kw_only(), nb::arg("dtype") = nb::none(),
        nb::sig(signature(name, std::string("x: Tensor, /, ") + by.axis +
                                    ": int, *, dtype: DType | None = None")
                    .c_str()),
        documented(by.axis == kTorch.axis ? name : "", doc).c_str());
  }
}

void def_along(nb::module_& m, const char* name, AlongAxis op, const char* doc) {
  for (const Spelling& by : {kTorch, kArrayApi}) {
    m.def(
        name,
        [op](const Tensor& x, std::int64_t axis) {
          return unlocked(x.numel(), [&] { return op(x, axis); });
        },
        nb::arg(), nb::arg(by.axis) = -1,
        nb::sig(signature(name, std::string("x: Tensor, /, ") + by.axis + ": int = -1").c_str()),
        documented(by.axis == kTorch.axis ? name : "", doc).c_str());
  }
}

Tensor between_neighbours(const Tensor& x, std::int64_t axis) {
  const std::int64_t last = std::max<std::int64_t>(x.size(axis) - 1, 0);
  const Tensor later = narrow(x, axis, x.size(axis) - last, last);
  const Tensor earlier = narrow(x, axis, 0, last);
  return is_bool(x.dtype()) ? not_equal(later, earlier) : subtract(later, earlier);
}

Tensor differences(const Tensor& x, std::int64_t axis, std::int64_t n,
                   const std::optional<Tensor>& prepend, const std::optional<Tensor>& append) {
  if (n < 0) throw ValueError(message("diff: n must not be negative, got ", n));
  if (x.ndim() == 0) throw ShapeError(message("diff: wanted at least one axis, got ", describe(x)));
  if (n == 0) return x;
  std::vector<Tensor> parts;
  if (prepend) parts.push_back(*prepend);
  parts.push_back(x);
  if (append) parts.push_back(*append);
  Tensor result = parts.size() == 1 ? x : concat(parts, axis);
  // After as many rounds as there are elements, the result is empty.
  n = std::min(n, result.size(axis));
  if (n == 1) return between_neighbours(result, axis);
  const Widened wide({&result});
  Tensor rest = wide(result);
  for (; n > 0; --n) rest = between_neighbours(rest, axis);
  return wide.rounded(rest);
}

void bind_scans(nb::module_& m) {
  def_scan(m, "cumulative_sum", &cumulative_sum, 0,
           "Running sum along an axis; include_initial puts a 0 in front.");
  def_scan(m, "cumulative_prod", &cumulative_prod, 1,
           "Running product along an axis; include_initial puts a 1 in front.");
  def_short_scan(m, "cumsum", &cumulative_sum, "Running sum along an axis.");
  def_short_scan(m, "cumprod", &cumulative_prod, "Running product along an axis.");
  def_along(m, "cumulative_max", &cumulative_max, "Running maximum along an axis; NaN sticks.");
  def_along(m, "softmax", &softmax, "exp(x - max) over its sum along an axis.");
  def_along(m, "log_softmax", &log_softmax, "x - logsumexp(x) along an axis.");
  const auto diff = [](const Tensor& x, std::int64_t axis, std::int64_t n,
                       const std::optional<Tensor>& prepend, const std::optional<Tensor>& append) {
    return unlocked(x.numel(), [&] {
      return in_name_of("diff", [&] { return differences(x, axis, n, prepend, append); });
    });
  };
  m.def("diff", diff, nb::arg(), nb::kw_only(), nb::arg("axis") = -1, nb::arg("n") = 1,
        nb::arg("prepend") = nb::none(), nb::arg("append") = nb::none(),
        nb::sig(signature("diff",
                          "x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | "
                          "None = None, append: Tensor | None = None")
                    .c_str()),
        documented("diff", "Differences of neighbours along an axis, n times over.").c_str());
  m.def(
      "diff",
      [diff](const Tensor& x, std::int64_t n, std::int64_t dim,
             const std::optional<Tensor>& prepend,
             const std::optional<Tensor>& append) { return diff(x, dim, n, prepend, append); },
      nb::arg(), nb::arg("n") = 1, nb::arg("dim") = -1, nb::arg("prepend") = nb::none(),
      nb::arg("append") = nb::none(),
      nb::sig(signature("diff",
                        "x: Tensor, /, n: int = 1, dim: int = -1, prepend: Tensor | None = "
                        "None, append: Tensor | None = None")
                  .c_str()));
}

}  // namespace

void bind_reductions(nb::module_& m) {
  def_reduce_to(m, "sum", &sum,
                "Sum over the axes, all by default.\n\nIntegers and bools sum to int64 (uint64 for "
                "unsigned ones) unless a dtype is given.");
  def_reduce_to(m, "prod", &prod, "Product over the axes, all by default; dtypes as for sum.");
  def_reduce(m, "mean", &mean, "Arithmetic mean over the axes, all by default.");
  def_reduce(m, "amax", &amax, "Greatest over the axes, all by default; NaN if any is.");
  def_reduce(m, "amin", &amin, "Least over the axes, all by default; NaN if any is.");
  def_reduce(m, "any", &any, "True where any is non-zero.");
  def_reduce(m, "all", &all, "True where all are non-zero.");
  def_reduce(m, "count_nonzero", &count_nonzero, "Number of non-zero elements.");
  def_reduce(m, "logsumexp", &logsumexp, "Log of the sum of exponentials over the axes.");
  def_extreme(m, "max", &max, &argmax,
              "Greatest over the axes, all by default; NaN if any is.\n\nIn PyTorch's spelling, "
              "max(x, dim), the pair of values and positions.");
  def_extreme(m, "min", &min, &argmin,
              "Least over the axes, all by default; NaN if any is.\n\nIn PyTorch's spelling, "
              "min(x, dim), the pair of values and positions.");
  def_position(m, "argmax", &argmax,
               "Position of the first greatest element; without an axis, in row-major order.");
  def_position(m, "argmin", &argmin,
               "Position of the first least element; without an axis, in row-major order.");
  def_spread(m, "var", &var,
             "Variance over the axes, all by default.\n\nThe divisor is n - correction, which is 0 "
             "unless given; 1 in PyTorch's spelling, var(x, dim).");
  def_spread(m, "std", &baregrad::std, "Square root of var, which says what `correction` is.");
  for (const Spelling& by : {kTorch, kArrayApi}) {
    const bool torch = by.axis == kTorch.axis;
    m.def(
        "norm",
        [](const Tensor& x, double order, const Axes& axes, bool keep) {
          return unlocked(x.numel(), [&] { return norm(x, order, axes, keep); });
        },
        nb::arg(), nb::arg(torch ? "p" : "ord") = 2.0, nb::arg(by.axis) = nb::none(),
        nb::arg(by.keep) = false,
        nb::sig(signature("norm", torch
                                      ? "x: Tensor, /, p: float = 2.0, dim: Axes = None, keepdim: "
                                        "bool = False"
                                      : "x: Tensor, /, ord: float = 2.0, axis: Axes = None, "
                                        "keepdims: bool = False")
                    .c_str()),
        documented(torch ? "norm" : "", "(sum |x|^p)^(1/p); p may be infinite or 0.").c_str());
  }
  bind_scans(m);
}

}  // namespace baregrad::python

// Reductions, scans, order and products as methods. Each takes PyTorch's `dim` and `keepdim`, and
// NumPy's `axis` and `keepdims` by name.
#include "baregrad/ops.h"
#include "call.h"
#include "functions.h"
#include "ops_products.h"
#include "tensor_methods.h"
#include "tensor_slots.h"

namespace baregrad::python {
namespace {

using Product = Tensor (*)(const Tensor&, const Tensor&);

void def_reduce(TensorClass& tensor, const char* name, Reduce op, const char* doc) {
  for (const Spelling& by : {kTorch, kArrayApi}) {
    tensor.def(
        name,
        [op](const Tensor& x, const Axes& axes, bool keep) {
          return unlocked(x.numel(), [&] { return op(x, axes, keep); });
        },
        nb::arg(by.axis) = nb::none(), nb::arg(by.keep) = false, doc);
  }
}

void def_reduce_to(TensorClass& tensor, const char* name, ReduceTo op, const char* doc) {
  for (const Spelling& by : {kTorch, kArrayApi}) {
    tensor.def(
        name,
        [op](const Tensor& x, const Axes& axes, bool keep, DTypeOption dtype) {
          return unlocked(x.numel(), [&] { return op(x, axes, keep, dtype); });
        },
        nb::arg(by.axis) = nb::none(), nb::arg(by.keep) = false, nb::kw_only(),
        nb::arg("dtype") = nb::none(), doc);
  }
}

void def_position(TensorClass& tensor, const char* name, Position op, const char* doc) {
  for (const Spelling& by : {kTorch, kArrayApi}) {
    tensor.def(
        name,
        [op](const Tensor& x, std::optional<std::int64_t> axis, bool keep) {
          return unlocked(x.numel(), [&] { return op(x, axis, keep); });
        },
        nb::arg(by.axis) = nb::none(), nb::arg(by.keep) = false, doc);
  }
}

/// The divisor is n - correction: PyTorch's methods have 1, the array API has 0.
void def_spread(TensorClass& tensor, const char* name, Spread op, const char* doc) {
  const auto work = [op](const Tensor& x, const Axes& axes, double correction, bool keep) {
    return unlocked(x.numel(), [&] { return op(x, axes, correction, keep); });
  };
  tensor.def(name, work, nb::arg("dim") = nb::none(), nb::kw_only(), nb::arg("correction") = 1.0,
             nb::arg("keepdim") = false, doc);
  tensor.def(name, work, nb::arg("axis"), nb::kw_only(), nb::arg("correction") = 0.0,
             nb::arg("keepdims") = false, doc);
  // PyTorch's older spelling: `unbiased` is a correction of 1, else 0.
  tensor.def(
      name, [work](const Tensor& x, bool unbiased) { return work(x, {}, unbiased ? 1 : 0, false); },
      nb::arg("unbiased"), doc);
  tensor.def(
      name,
      [work](const Tensor& x, const Axes& axes, bool unbiased, bool keep) {
        return work(x, axes, unbiased ? 1 : 0, keep);
      },
      nb::arg("dim").none(), nb::arg("unbiased"), nb::arg("keepdim") = false, doc);
}

void def_along(TensorClass& tensor, const char* name, AlongAxis op, const char* doc) {
  for (const Spelling& by : {kTorch, kArrayApi}) {
    tensor.def(
        name,
        [op](const Tensor& x, std::int64_t axis) {
          return unlocked(x.numel(), [&] { return op(x, axis); });
        },
        nb::arg(by.axis), doc);
  }
}

void def_product(TensorClass& tensor, const char* name, Product op, const char* doc) {
  tensor.def(
      name,
      [op](const Tensor& x, const Tensor& other) {
        return unlocked_if(is_long_product(x, other), [&] { return op(x, other); });
      },
      nb::arg("other"), doc);
}

ValuePair pair(ValuesAndIndices found) {
  return value_pair(std::move(found.values), std::move(found.indices));
}

/// x.max(): over all elements. x.max(dim): values and positions, as in PyTorch. x.max(axis=...):
/// values.
void def_extreme(TensorClass& tensor, const char* name, Reduce op, Position position,
                 const char* doc) {
  tensor.def(
      name, [op](const Tensor& x) { return unlocked(x.numel(), [&] { return op(x, {}, false); }); },
      doc);
  tensor.def(
      name,
      [position, name](const Tensor& x, std::int64_t dim, bool keepdim) {
        const auto work = [&] {
          // One pass finds the positions; the values, which have a gradient, are gathered by them.
          Tensor indices = position(x, dim, true);
          Tensor values = take_along_axis(x, indices, dim);
          if (!keepdim && x.ndim() != 0) {
            indices = squeeze(indices, dim);
            values = squeeze(values, dim);
          }
          return ValuesAndIndices{values, indices};
        };
        const auto found = unlocked(x.numel(), [&] { return in_name_of(name, work); });
        return pair(found);
      },
      nb::arg("dim"), nb::arg("keepdim") = false);
  tensor.def(
      name,
      [op](const Tensor& x, const Axes& axes, bool keep) {
        return unlocked(x.numel(), [&] { return op(x, axes, keep); });
      },
      nb::kw_only(), nb::arg("axis") = nb::none(), nb::arg("keepdims") = false);
}

void bind_reductions(TensorClass& tensor) {
  def_reduce_to(tensor, "sum", &sum, R"(Sum over the axes, all by default.

Integers and bools sum to int64 (uint64 for unsigned ones) unless a dtype is given.

>>> bg.ones((2, 3)).sum(dim=0)
tensor([2., 2., 2.]))");
  def_reduce_to(tensor, "prod", &prod, "Product over the axes, all by default.");
  def_reduce(tensor, "mean", &mean, "Arithmetic mean over the axes, all by default.");
  def_reduce(tensor, "amax", &amax, "Greatest over the axes, all by default; NaN if any is.");
  def_reduce(tensor, "amin", &amin, "Least over the axes, all by default; NaN if any is.");
  def_reduce(tensor, "any", &any, "True where any is non-zero.");
  def_reduce(tensor, "all", &all, "True where all are non-zero.");
  def_reduce(tensor, "count_nonzero", &count_nonzero, "Number of non-zero elements.");
  def_reduce(tensor, "logsumexp", &logsumexp, "Log of the sum of exponentials over the axes.");
  def_extreme(tensor, "max", &max, &argmax, R"(The greatest element; NaN if any is.

Without arguments: of all elements. With `dim`, as in PyTorch: the pair of values and positions.
With `axis=`, as in NumPy: values only.

>>> bg.arange(4).reshape(2, 2).max(axis=0)
tensor([2, 3])
>>> bg.arange(4).reshape(2, 2).max(dim=1).indices
tensor([1, 1]))");
  def_extreme(tensor, "min", &min, &argmin,
              "The least element; the arguments and results are those of max.");
  def_position(tensor, "argmax", &argmax,
               "Position of the first greatest element; without an axis, in row-major order.");
  def_position(tensor, "argmin", &argmin,
               "Position of the first least element; without an axis, in row-major order.");
  def_spread(tensor, "var", &var, R"(Variance over the axes, all by default.

The divisor is n - correction. As in PyTorch correction is 1 by default; with `axis=`, and in the
function baregrad.var, it is 0 as in NumPy and in the array API.

>>> bg.arange(4, dtype=bg.float32).var(correction=0)
tensor(1.2500))");
  def_spread(tensor, "std", &std, "Square root of var, with the same arguments.");
  tensor.def(
      "norm",
      [](const Tensor& x, double order, const Axes& axes, bool keep) {
        return unlocked(x.numel(), [&] { return norm(x, order, axes, keep); });
      },
      nb::arg("p") = 2.0, nb::arg("dim") = nb::none(), nb::arg("keepdim") = false,
      "(sum |x|^p)^(1/p); p may be infinite or 0.");
}

void bind_scans(TensorClass& tensor) {
  using Scan = Tensor (*)(const Tensor&, std::int64_t, DTypeOption);
  const auto def_scan = [&tensor](const char* name, Scan op, const char* doc) {
    for (const Spelling& by : {kTorch, kArrayApi}) {
      tensor.def(
          name,
          [op, name](const Tensor& x, std::int64_t axis, DTypeOption dtype) {
            return unlocked(x.numel(),
                            [&] { return in_name_of(name, [&] { return op(x, axis, dtype); }); });
          },
          nb::arg(by.axis), nb::kw_only(), nb::arg("dtype") = nb::none(), doc);
    }
  };
  def_scan("cumsum", &cumulative_sum, "Running sum along an axis.");
  def_scan("cumprod", &cumulative_prod, "Running product along an axis.");
  def_along(tensor, "softmax", &softmax, "exp(x - max) over its sum along an axis.");
  def_along(tensor, "log_softmax", &log_softmax, "x - logsumexp(x) along an axis.");
}

void bind_order(TensorClass& tensor) {
  tensor
      .def(
          "sort",
          [](const Tensor& x, std::int64_t dim, bool descending) {
            return pair(unlocked(x.numel(), [&] {
              return in_name_of("sort", [&] { return sort_with_indices(x, dim, descending); });
            }));
          },
          nb::arg("dim") = -1, nb::arg("descending") = false,
          "Values in order along an axis, and their positions; the sort is stable.")
      .def(
          "argsort",
          [](const Tensor& x, std::int64_t dim, bool descending, bool stable) {
            return unlocked(x.numel(), [&] { return argsort(x, dim, descending, stable); });
          },
          nb::arg("dim") = -1, nb::arg("descending") = false, nb::kw_only(),
          nb::arg("stable") = true, "Positions that put an axis in order.")
      .def(
          "topk",
          [](const Tensor& x, std::int64_t k, std::int64_t dim, bool largest) {
            return pair(unlocked(x.numel(), [&] { return topk(x, k, dim, largest); }));
          },
          nb::arg("k"), nb::arg("dim") = -1, nb::arg("largest") = true,
          "The k greatest (or least) along an axis, in order, and their positions.");
}

void bind_products(TensorClass& tensor) {
  def_product(tensor, "matmul", &matmul,
              "Matrix product over the last two axes, broadcast over the others.");
  def_product(tensor, "mm", &mm, "Product of two matrices.");
  def_product(tensor, "mv", &mv, "Matrix times vector.");
  def_product(tensor, "bmm", &bmm, "Matrix products of two stacks of as many matrices.");
  def_product(tensor, "outer", &outer, "All products of the elements of two vectors.");
  def_product(tensor, "dot", &dot, "Sum of the products of two vectors.");
}

}  // namespace

void bind_reduction_methods(TensorClass& tensor) {
  bind_reductions(tensor);
  bind_scans(tensor);
  bind_order(tensor);
  bind_products(tensor);
}

}  // namespace baregrad::python

// Order and search: public functions and infer functions of sort, topk, searchsorted and unique.
#include <algorithm>
#include <utility>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/history.h"
#include "core/message.h"
#include "ops/dispatch.h"
#include "ops/infer.h"
#include "ops/internal_ops.h"

namespace baregrad {

namespace {

void check_input(const Tensor& x, const char* who) {
  if (!x.defined()) throw ValueError(message(who, ": the tensor is undefined"));
}

/// A 0-d tensor counts as a line of one element: axis 0 or -1.
int line_axis(const Tensor& x, std::int64_t axis, const char* who) {
  check_input(x, who);
  return normalize_axis(axis, std::max(x.ndim(), 1), who);
}

std::int64_t line_length(const Tensor& x, int axis) { return x.ndim() == 0 ? 1 : x.shape()[axis]; }

/// Always stable.
std::vector<Tensor> sorted(const Tensor& x, std::int64_t axis, bool descending, int outputs,
                           const char* who) {
  SortAttrs attrs;
  attrs.axis = line_axis(x, axis, who);
  attrs.descending = descending;
  // The gradient goes back along the indices.
  const bool recorded = History::recording() && History::maybe_tracked(x);
  attrs.outputs = recorded ? outputs | kOrderIndices : outputs;
  return run_many(OpId::sort, {&x}, attrs, who);
}

OutputSpec wanted(int mode, int output, const Dims& shape, DType dtype) {
  return {(mode & output) != 0 ? shape : Dims{0}, dtype};
}

/// The outputs of unique cut to what was found. They are copied, so that a few distinct values do
/// not keep the memory of all.
class Unique {
 public:
  Unique(const Tensor& x, int outputs, const char* who) {
    check_input(x, who);
    results_ = run_many(OpId::unique, {&x}, UniqueAttrs{outputs}, who);
    found_ = results_[4].item<std::int64_t>();
  }
  Tensor values() { return cut(results_[0]); }
  Tensor indices() { return cut(results_[1]); }
  Tensor inverse() { return std::move(results_[2]); }
  Tensor counts() { return cut(results_[3]); }

 private:
  Tensor cut(const Tensor& all) const {
    return all.numel() == found_ ? all : clone(narrow(all, 0, 0, found_));
  }

  std::vector<Tensor> results_;
  std::int64_t found_ = 0;
};

DType common_dtype(const Tensor& a, const Tensor& b) {
  try {
    return promote(a.dtype(), b.dtype());
  } catch (const DTypeError&) {
    throw DTypeError(message("searchsorted: ", describe(a), " and ", describe(b),
                             " have no common dtype; cast one of them with astype"));
  }
}

}  // namespace

// ---- sort and topk

Tensor sort(const Tensor& x, std::int64_t axis, bool descending, bool) {
  return std::move(sorted(x, axis, descending, kOrderValues, "sort")[0]);
}

Tensor argsort(const Tensor& x, std::int64_t axis, bool descending, bool) {
  return std::move(sorted(x, axis, descending, kOrderIndices, "argsort")[1]);
}

ValuesAndIndices sort_with_indices(const Tensor& x, std::int64_t axis, bool descending) {
  std::vector<Tensor> both =
      sorted(x, axis, descending, kOrderValues | kOrderIndices, "sort_with_indices");
  return {std::move(both[0]), std::move(both[1])};
}

std::vector<OutputSpec> infer_sort(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  const int outputs = call.attrs.as<SortAttrs>().outputs;
  return {wanted(outputs, kOrderValues, x.shape(), x.dtype()),
          wanted(outputs, kOrderIndices, x.shape(), DType::Int64)};
}

ValuesAndIndices topk(const Tensor& x, std::int64_t k, std::int64_t axis, bool largest) {
  const TopKAttrs attrs{line_axis(x, axis, "topk"), k, largest};
  std::vector<Tensor> both = run_many(OpId::topk, {&x}, attrs);
  return {std::move(both[0]), std::move(both[1])};
}

std::vector<OutputSpec> infer_topk(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  const auto& attrs = call.attrs.as<TopKAttrs>();
  const std::int64_t k = attrs.k;
  const std::int64_t n = line_length(x, attrs.axis);
  if (x.ndim() == 0 && k != 1) {
    throw ValueError(
        message("topk: k is ", k, ", but ", describe(x), " without axes has exactly 1"));
  }
  if (k < 0 || k > n) {
    throw ValueError(message("topk: k is ", k, ", but axis ", attrs.axis, " of ", describe(x),
                             " has ", n, " elements"));
  }
  Dims shape = x.shape();
  if (x.ndim() > 0) shape[attrs.axis] = k;
  return {{shape, x.dtype()}, {shape, DType::Int64}};
}

// ---- searchsorted

/// Both inputs have one dtype by the time of the call.
Tensor searchsorted(const Tensor& sorted, const Operand& values, bool right) {
  check_input(sorted, "searchsorted");
  Tensor needles;
  if (values.tensor() != nullptr) {
    check_input(*values.tensor(), "searchsorted");
    needles = *values.tensor();
  } else {
    const DType weak = weak_dtype(values.scalar(), sorted.dtype());
    needles = Tensor::scalar(values.scalar(), weak, "searchsorted");
  }
  const DType dtype = common_dtype(sorted, needles);
  const Tensor hay = converted(sorted, dtype, "searchsorted");
  needles = converted(needles, dtype, "searchsorted");
  return run(OpId::searchsorted, {&hay, &needles}, SearchSortedAttrs{right});
}

std::vector<OutputSpec> infer_searchsorted(const OpCall& call) {
  const Tensor& sorted = *call.inputs[0];
  const Tensor& values = *call.inputs[1];
  bool fits = sorted.ndim() == 1;
  if (sorted.ndim() > 1 && sorted.ndim() == values.ndim()) {
    fits = std::equal(sorted.shape().begin(), sorted.shape().end() - 1, values.shape().begin());
  }
  if (!fits) {
    throw ShapeError(message("searchsorted: cannot search ", describe(values), " in ",
                             describe(sorted),
                             ": the sorted tensor must be 1-d, or all axes but the last the same"));
  }
  return {{values.shape(), DType::Int64}};
}

// ---- unique

UniqueAll unique_all(const Tensor& x) {
  Unique found(x, kOrderIndices | kOrderInverse | kOrderCounts, "unique_all");
  return {found.values(), found.indices(), found.inverse(), found.counts()};
}

Tensor unique_values(const Tensor& x) { return Unique(x, 0, "unique_values").values(); }

UniqueCounts unique_counts(const Tensor& x) {
  Unique found(x, kOrderCounts, "unique_counts");
  return {found.values(), found.counts()};
}

UniqueInverse unique_inverse(const Tensor& x) {
  Unique found(x, kOrderInverse, "unique_inverse");
  return {found.values(), found.inverse()};
}

/// How many values are distinct is known to the kernel alone: every output has room for all, and a
/// fifth says how much of it was used.
std::vector<OutputSpec> infer_unique(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  const int mode = call.attrs.as<UniqueAttrs>().outputs;
  const Dims room{x.numel()};
  return {{room, x.dtype()},
          wanted(mode, kOrderIndices, room, DType::Int64),
          wanted(mode, kOrderInverse, x.shape(), DType::Int64),
          wanted(mode, kOrderCounts, room, DType::Int64),
          {{}, DType::Int64}};
}

}  // namespace baregrad

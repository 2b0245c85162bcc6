// Picking and placing along one axis, and by mask: take, gather, scatter, masked_select, nonzero.
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/message.h"
#include "ops/dispatch.h"
#include "ops/infer.h"
#include "ops/internal_ops.h"
#include "ops/positions.h"

namespace baregrad {

namespace {

/// PyTorch's rule: as many axes as x, and no longer than x but along `axis`.
void check_along_axis(const OpCall& call) {
  const char* who = op_name(call.op);
  const Tensor& x = *call.inputs[0];
  const Tensor& indices = *call.inputs[1];
  const int axis = call.attrs.as<AlongAttrs>().axis;
  if (indices.ndim() != x.ndim()) {
    throw ShapeError(message(who, ": indices ", describe(indices), " and x ", describe(x),
                             " differ in their number of axes"));
  }
  for (int i = 0; i < x.ndim(); ++i) {
    if (i == axis || indices.shape()[i] <= x.shape()[i]) continue;
    throw ShapeError(message(who, ": indices ", describe(indices), " are longer than x ",
                             describe(x), " along axis ", i, " (", indices.shape()[i], " and ",
                             x.shape()[i], ")"));
  }
}

Tensor scatter_with(OpId op, const Tensor& x, std::int64_t axis, const Tensor& indices,
                    const Operand& source) {
  const char* who = op_name(op);
  require_defined(x, "x", who);
  const AlongAttrs attrs{normalize_axis(axis, x.ndim(), who)};
  const Tensor positions = as_int64(indices, "indices", who);
  Tensor values = assigned(source, x, who);
  if (source.tensor() == nullptr) values = repeated_to(values, positions.shape(), who);
  return run(op, {&x, &positions, &values}, attrs);
}

}  // namespace

Tensor take(const Tensor& x, const Tensor& indices, std::optional<std::int64_t> axis) {
  require_defined(x, "x", "take");
  if (!axis) return take(reshape(x, {x.numel()}), indices, 0);
  const Tensor positions = as_int64(indices, "indices", "take");
  const int a = normalize_axis(*axis, x.ndim(), "take");
  const PositionsAttrs attrs{a, {a}, x.shape()};
  return run(OpId::take, {&x, &positions}, attrs);
}

std::vector<OutputSpec> infer_gather(const OpCall& call) {
  check_along_axis(call);
  return {{call.inputs[1]->shape(), call.inputs[0]->dtype()}};
}

Tensor gather(const Tensor& x, std::int64_t axis, const Tensor& indices) {
  require_defined(x, "x", "gather");
  const AlongAttrs attrs{normalize_axis(axis, x.ndim(), "gather")};
  const Tensor positions = as_int64(indices, "indices", "gather");
  return run(OpId::gather, {&x, &positions}, attrs);
}

/// x, positions, and a source that is at least as long as the positions along every axis.
std::vector<OutputSpec> infer_scatter(const OpCall& call) {
  check_along_axis(call);
  const Tensor& x = *call.inputs[0];
  const Tensor& indices = *call.inputs[1];
  const Tensor& source = *call.inputs[2];
  bool fits = source.ndim() == indices.ndim();
  for (int i = 0; fits && i < indices.ndim(); ++i) fits = indices.shape()[i] <= source.shape()[i];
  if (!fits) {
    throw ShapeError(message(op_name(call.op), ": indices ", describe(indices),
                             " reach beyond the source ", describe(source)));
  }
  return {{x.shape(), x.dtype()}};
}

Tensor scatter(const Tensor& x, std::int64_t axis, const Tensor& indices, const Operand& source) {
  return scatter_with(OpId::scatter, x, axis, indices, source);
}

Tensor scatter_add(const Tensor& x, std::int64_t axis, const Tensor& indices,
                   const Tensor& source) {
  return scatter_with(OpId::scatter_add, x, axis, indices, source);
}

/// x and a bool mask of one shape.
std::vector<OutputSpec> infer_masked_select(const OpCall& call) {
  return {{Dims{call.attrs.as<FoundAttrs>().count}, call.inputs[0]->dtype()}};
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  require_defined(x, "x", "masked_select");
  require_defined(mask, "the mask", "masked_select");
  if (!is_bool(mask.dtype())) {
    throw DTypeError(message("masked_select: the mask must be bool, not ", describe(mask)));
  }
  if (x.shape() == mask.shape()) {
    return run(OpId::masked_select, {&x, &mask}, FoundAttrs{count_true(mask)});
  }
  Dims shape;
  if (!broadcast_shapes(x.shape(), mask.shape(), shape)) {
    throw ShapeError(
        message("masked_select: mask ", describe(mask), " does not broadcast with ", describe(x)));
  }
  checked_numel(shape, x.dtype(), "masked_select");
  const Tensor values = repeated_to(x, shape, "masked_select");
  const Tensor picked = repeated_to(mask, shape, "masked_select");
  return run(OpId::masked_select, {&values, &picked}, FoundAttrs{count_true(picked)});
}

/// A bool tensor; one row of positions per axis.
std::vector<OutputSpec> infer_nonzero(const OpCall& call) {
  const Tensor& mask = *call.inputs[0];
  return std::vector<OutputSpec>(static_cast<std::size_t>(mask.ndim()),
                                 OutputSpec{Dims{call.attrs.as<FoundAttrs>().count}, DType::Int64});
}

std::vector<Tensor> nonzero(const Tensor& x) {
  require_defined(x, "x", "nonzero");
  if (x.ndim() == 0) {
    throw ValueError(message("nonzero: ", describe(x), " is 0-d and has no positions"));
  }
  const Tensor mask = is_bool(x.dtype()) ? x : not_equal(x, 0);
  return run_many(OpId::nonzero, {&mask}, FoundAttrs{count_true(mask)});
}

}  // namespace baregrad

// Ops that move elements without looking at them: concat, roll, pad.
#include <algorithm>
#include <cstring>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/message.h"
#include "core/rename.h"
#include "ops/dispatch.h"
#include "ops/infer.h"
#include "ops/positions.h"

namespace baregrad {

namespace {

/// a modulo n, never negative; n > 0.
std::int64_t wrapped(std::int64_t a, std::int64_t n) {
  const std::int64_t rest = a % n;
  return rest < 0 ? rest + n : rest;
}

/// The elements of an axis of size n that stand at the places -before to size - before - 1, of
/// which some lie outside of it.
Tensor padded_positions(std::int64_t before, std::int64_t size, std::int64_t n, PadMode mode,
                        Device device) {
  const Tensor at = arange(-before, size - before, 1, DType::Int64, device);
  if (mode == PadMode::Edge || n == 1) return clip(at, std::int64_t{0}, n - 1);
  if (mode == PadMode::Wrap) return remainder(at, n);
  // Reflect: there and back again, the two ends once each.
  const std::int64_t period = 2 * (n - 1);
  const Tensor rest = remainder(at, period);
  return minimum(rest, period - rest);
}

Dims padded_shape(const Tensor& x, const PadAttrs& attrs) {
  Dims shape = x.shape();
  for (int i = 0; i < x.ndim(); ++i) {
    shape[i] = checked_add(shape[i], attrs.before[i], "pad");
    shape[i] = checked_add(shape[i], attrs.after[i], "pad");
  }
  return shape;
}

/// Borders made of x's own elements are picked by position, one axis after the other.
Tensor pad_from_itself(const Tensor& x, const Dims& before, const Dims& shape, PadMode mode) {
  for (int i = 0; i < x.ndim(); ++i) {
    if (shape[i] != x.shape()[i] && x.shape()[i] == 0) {
      throw ValueError(
          message("pad: axis ", i, " of ", describe(x), " is empty; only a constant can pad it"));
    }
  }
  if (checked_numel(shape, x.dtype(), "pad") == 0) return clone(reshape(x, shape));
  Tensor out = x;
  for (int i = x.ndim() - 1; i >= 0; --i) {
    const std::int64_t n = x.shape()[i];
    if (shape[i] == n) continue;
    out = in_name_of("pad", [&] {
      return take(out, padded_positions(before[i], shape[i], n, mode, x.device()), i);
    });
  }
  return out.is_same(x) ? clone(x) : out;
}

}  // namespace

std::vector<OutputSpec> infer_concat(const OpCall& call) {
  const Tensor& first = *call.inputs[0];
  const int axis = call.attrs.as<ConcatAttrs>().axis;
  Dims shape = first.shape();
  for (std::size_t k = 1; k < call.inputs.size(); ++k) {
    const Tensor& t = *call.inputs[k];
    if (t.ndim() != first.ndim()) {
      throw ShapeError(message("concat: tensor ", k, " is ", describe(t), " and tensor 0 is ",
                               describe(first), ": they differ in their number of axes"));
    }
    for (int i = 0; i < t.ndim(); ++i) {
      if (i == axis || t.shape()[i] == shape[i]) continue;
      throw ShapeError(message("concat: tensor ", k, " is ", describe(t), " and tensor 0 is ",
                               describe(first), ": sizes ", t.shape()[i], " and ", shape[i],
                               " differ at axis ", i, "; only axis ", axis, " may differ"));
    }
    shape[axis] = checked_add(shape[axis], t.shape()[axis], call.name());
  }
  return {{shape, infer_elementwise_types(call).result}};
}

Tensor concat(const std::vector<Tensor>& tensors, std::optional<std::int64_t> axis) {
  if (tensors.empty()) throw ValueError("concat: needs at least one tensor");
  std::vector<Tensor> flat;
  std::vector<const Tensor*> inputs;
  flat.reserve(tensors.size());
  inputs.reserve(tensors.size());
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const Tensor& t = tensors[k];
    if (!t.defined()) throw ValueError(message("concat: tensor ", k, " is undefined"));
    if (axis && t.ndim() == 0) {
      throw ShapeError(message("concat: tensor ", k, " is ", describe(t),
                               " and has no axis to join along; use stack, or no axis"));
    }
    flat.push_back(axis ? t : reshape(t, {t.numel()}));
    inputs.push_back(&flat.back());
  }
  ConcatAttrs attrs;
  if (axis) attrs.axis = normalize_axis(*axis, tensors[0].ndim(), "concat");
  return run({OpId::concat, inputs, attrs});
}

std::vector<OutputSpec> infer_roll(const OpCall& call) {
  return {{call.inputs[0]->shape(), call.inputs[0]->dtype()}};
}

Tensor roll(const Tensor& x, const Dims& shifts, const Axes& axes) {
  require_defined(x, "x", "roll");
  if (axes.all()) {
    if (shifts.size() != 1) {
      throw ValueError(message("roll: ", shifts.size(), " shifts ", to_string(shifts),
                               " without axes; a flat roll takes one"));
    }
    return reshape(roll(reshape(x, {x.numel()}), shifts, 0), x.shape());
  }
  if (shifts.size() != 1 && shifts.size() != axes.list().size()) {
    throw ValueError(message("roll: shifts ", to_string(shifts), " and axes ",
                             to_string(axes.list()), " differ in length"));
  }
  RollAttrs attrs{Dims(x.ndim(), 0)};
  for (int k = 0; k < axes.list().size(); ++k) {
    const int axis = normalize_axis(axes.list()[k], x.ndim(), "roll");
    const std::int64_t n = x.shape()[axis];
    if (n == 0) continue;
    // An axis named twice is shifted twice. The sum of two remainders may pass 2^63.
    std::int64_t& shift = attrs.shifts[axis];
    const std::int64_t more = wrapped(shifts[shifts.size() == 1 ? 0 : k], n);
    shift = shift >= n - more ? shift - (n - more) : shift + more;
  }
  return run(OpId::roll, {&x}, attrs);
}

std::vector<OutputSpec> infer_pad(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  return {{padded_shape(x, call.attrs.as<PadAttrs>()), x.dtype()}};
}

Tensor pad(const Tensor& x, const std::vector<std::int64_t>& widths, PadMode mode,
           const Scalar& value) {
  require_defined(x, "x", "pad");
  if (widths.size() != 2 * static_cast<std::size_t>(x.ndim())) {
    throw ValueError(message("pad: ", describe(x), " takes ", 2 * x.ndim(),
                             " widths (before and after, axis by axis), not ", widths.size()));
  }
  PadAttrs attrs;
  for (std::size_t k = 0; k < widths.size(); ++k) {
    if (widths[k] < 0) {
      throw ValueError(message("pad: negative width ", widths[k], k % 2 == 0 ? " before" : " after",
                               " axis ", k / 2, "; use slice to cut"));
    }
    (k % 2 == 0 ? attrs.before : attrs.after).push_back(widths[k]);
  }
  if (mode != PadMode::Constant) {
    return pad_from_itself(x, attrs.before, padded_shape(x, attrs), mode);
  }
  check_assigned(value, x, "pad");
  store_scalar(value, x.dtype(), &attrs.element, "pad");
  return run(OpId::pad, {&x}, attrs);
}

}  // namespace baregrad

// Reductions, scans and softmax: public functions and what they infer.
#include <cmath>
#include <limits>

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

void check_reduced(const Tensor& x, const char* who) {
  if (!x.defined()) throw ValueError(message(who, ": input 0 is undefined"));
}
void check_reduced(const Tensor& x, OpId op) { check_reduced(x, op_name(op)); }

/// `who`: the function the user called, when that is not the op.
Tensor reduce(OpId op, const Tensor& x, const Axes& axes, bool keepdims, ReduceAttrs attrs = {},
              const char* who = nullptr) {
  const char* name = who != nullptr ? who : op_name(op);
  check_reduced(x, name);
  attrs.axes = axes_mask(axes, x.ndim(), name);
  attrs.keepdims = keepdims;
  return run(op, {&x}, attrs, name);
}

/// Small integers add up in the widest of their kind.
DType accumulated(DType dtype) {
  if (is_floating(dtype)) return dtype;
  return is_unsigned_int(dtype) ? DType::UInt64 : DType::Int64;
}

Tensor accumulate(OpId op, const Tensor& x, const Axes& axes, bool keepdims, DTypeOption dtype) {
  check_reduced(x, op);
  ReduceAttrs attrs;
  attrs.dtype = dtype.value_or(accumulated(x.dtype()));
  return reduce(op, x, axes, keepdims, attrs);
}

Tensor variance(OpId op, const Tensor& x, const Axes& axes, double correction, bool keepdims) {
  if (std::isnan(correction)) throw ValueError(message(op_name(op), ": correction is NaN"));
  ReduceAttrs attrs;
  attrs.correction = correction;
  return reduce(op, x, axes, keepdims, attrs);
}

Tensor arg_reduce(OpId op, const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  check_reduced(x, op);
  ArgReduceAttrs attrs;
  attrs.axis = axis ? normalize_axis(*axis, x.ndim(), op_name(op)) : -1;
  attrs.keepdims = keepdims;
  return run(op, {&x}, attrs);
}

template <class AxisAttrs>
Tensor along_axis(OpId op, const Tensor& x, std::int64_t axis, DType dtype) {
  AxisAttrs attrs;
  // A 0-d tensor is a line of one element.
  attrs.axis =
      x.ndim() == 0 && (axis == 0 || axis == -1) ? 0 : normalize_axis(axis, x.ndim(), op_name(op));
  attrs.dtype = dtype;
  return run(op, {&x}, attrs);
}

/// (sum |x|^order)^(1/order) of any other finite order. In float64: powers and their sum leave the
/// range of narrower dtypes where the norm does not.
Tensor power_norm(const Tensor& x, double order, const Axes& axes, bool keepdims) {
  const Tensor magnitude = abs(converted(x, DType::Float64, "norm"));
  const bool recorded = History::recording() && History::maybe_tracked(x);
  const auto raised = [&](const Tensor& base, double exponent, double corner) {
    // Where the power is infinitely steep the norm has a corner: its gradient there is zero.
    if (!recorded) return pow(base, exponent);
    const Tensor steep = base == corner;
    return where(steep, std::pow(corner, exponent), pow(where(steep, 1.0, base), exponent));
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Tensor total = sum(raised(magnitude, order, 0.0), axes, keepdims);
  return converted(raised(total, 1.0 / order, order > 0 ? 0.0 : kInfinity), x.dtype(), "norm");
}

/// Integers and bool as the default float.
Tensor taken_as_float(const Tensor& x, const char* who) {
  return is_floating(x.dtype()) ? x : converted(x, kDefaultFloat, who);
}

}  // namespace

Tensor sum(const Tensor& x, const Axes& axes, bool keepdims, DTypeOption dtype) {
  return accumulate(OpId::sum, x, axes, keepdims, dtype);
}
Tensor prod(const Tensor& x, const Axes& axes, bool keepdims, DTypeOption dtype) {
  return accumulate(OpId::prod, x, axes, keepdims, dtype);
}
Tensor mean(const Tensor& x, const Axes& axes, bool keepdims) {
  return reduce(OpId::mean, x, axes, keepdims);
}
Tensor var(const Tensor& x, const Axes& axes, double correction, bool keepdims) {
  return variance(OpId::var, x, axes, correction, keepdims);
}
Tensor std(const Tensor& x, const Axes& axes, double correction, bool keepdims) {
  return variance(OpId::std, x, axes, correction, keepdims);
}
Tensor amax(const Tensor& x, const Axes& axes, bool keepdims) {
  return reduce(OpId::amax, x, axes, keepdims);
}
Tensor amin(const Tensor& x, const Axes& axes, bool keepdims) {
  return reduce(OpId::amin, x, axes, keepdims);
}
Tensor max(const Tensor& x, const Axes& axes, bool keepdims) {
  return reduce(OpId::amax, x, axes, keepdims, {}, "max");
}
Tensor min(const Tensor& x, const Axes& axes, bool keepdims) {
  return reduce(OpId::amin, x, axes, keepdims, {}, "min");
}
Tensor any(const Tensor& x, const Axes& axes, bool keepdims) {
  return reduce(OpId::any, x, axes, keepdims);
}
Tensor all(const Tensor& x, const Axes& axes, bool keepdims) {
  return reduce(OpId::all, x, axes, keepdims);
}
Tensor count_nonzero(const Tensor& x, const Axes& axes, bool keepdims) {
  ReduceAttrs attrs;
  attrs.dtype = DType::Int64;
  return reduce(OpId::count_nonzero, x, axes, keepdims, attrs);
}
Tensor sum_squares(const Tensor& x, const Axes& axes, bool keepdims) {
  return reduce(OpId::sum_squares, x, axes, keepdims);
}
Tensor argmax(const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  return arg_reduce(OpId::argmax, x, axis, keepdims);
}
Tensor argmin(const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  return arg_reduce(OpId::argmin, x, axis, keepdims);
}

std::vector<OutputSpec> infer_scan(const OpCall& call) {
  return {{call.inputs[0]->shape(), call.attrs.as<ScanAttrs>().dtype}};
}
Tensor cumulative_sum(const Tensor& x, std::int64_t axis, DTypeOption dtype) {
  check_reduced(x, OpId::cumulative_sum);
  return along_axis<ScanAttrs>(OpId::cumulative_sum, x, axis,
                               dtype.value_or(accumulated(x.dtype())));
}
Tensor cumulative_prod(const Tensor& x, std::int64_t axis, DTypeOption dtype) {
  check_reduced(x, OpId::cumulative_prod);
  return along_axis<ScanAttrs>(OpId::cumulative_prod, x, axis,
                               dtype.value_or(accumulated(x.dtype())));
}
Tensor cumulative_max(const Tensor& x, std::int64_t axis) {
  check_reduced(x, OpId::cumulative_max);
  return along_axis<ScanAttrs>(OpId::cumulative_max, x, axis, x.dtype());
}

std::vector<OutputSpec> infer_softmax(const OpCall& call) {
  return {{call.inputs[0]->shape(), call.attrs.as<SoftmaxAttrs>().dtype}};
}
Tensor softmax(const Tensor& x, std::int64_t axis) {
  check_reduced(x, OpId::softmax);
  const Tensor as = taken_as_float(x, "softmax");
  return along_axis<SoftmaxAttrs>(OpId::softmax, as, axis, as.dtype());
}
Tensor log_softmax(const Tensor& x, std::int64_t axis) {
  check_reduced(x, OpId::log_softmax);
  const Tensor as = taken_as_float(x, "log_softmax");
  return along_axis<SoftmaxAttrs>(OpId::log_softmax, as, axis, as.dtype());
}

// keepdims form; the public function drops the axes.
std::vector<OutputSpec> infer_logsumexp(const OpCall& call) {
  return {{infer_reduced_shape(call.inputs[0]->shape(), call.attrs.as<LogSumExpAttrs>().axes, true),
           call.inputs[0]->dtype()}};
}
Tensor logsumexp(const Tensor& x, const Axes& axes, bool keepdims) {
  check_reduced(x, OpId::logsumexp);
  const Tensor as = taken_as_float(x, "logsumexp");
  const LogSumExpAttrs attrs{axes_mask(axes, x.ndim(), op_name(OpId::logsumexp))};
  Tensor out = run(OpId::logsumexp, {&as}, attrs);
  if (keepdims) return out;
  return reshape(out, infer_reduced_shape(x.shape(), attrs.axes, false));
}

Tensor norm(const Tensor& x, double order, const Axes& axes, bool keepdims) {
  check_reduced(x, "norm");
  if (std::isnan(order)) throw ValueError("norm: the order is NaN");
  const Tensor as = taken_as_float(x, "norm");
  axes_mask(axes, x.ndim(), "norm");
  if (order == 2.0) return reduce(OpId::norm2, as, axes, keepdims, {}, "norm");
  if (order == 0.0) {
    ReduceAttrs attrs;
    attrs.dtype = as.dtype();
    return reduce(OpId::count_nonzero, as, axes, keepdims, attrs, "norm");
  }
  if (std::isinf(order)) {
    return reduce(order > 0 ? OpId::amax : OpId::amin, abs(as), axes, keepdims, {}, "norm");
  }
  if (order == 1.0) return sum(abs(as), axes, keepdims);
  return power_norm(as, order, axes, keepdims);
}

}  // namespace baregrad

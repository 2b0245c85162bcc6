// Normalisation: public functions and what they infer.
#include <limits>

#include "backends/cpu/abi.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/history.h"
#include "core/message.h"
#include "ops/dispatch.h"
#include "ops/fused.h"
#include "ops/infer.h"
#include "ops/internal_ops.h"
#include "ops/positions.h"

namespace baregrad {

namespace {

void require_floating(const Tensor& x, const char* what, const char* who) {
  require_defined(x, what, who);
  if (is_floating(x.dtype())) return;
  throw DTypeError(
      message(who, ": ", what, " must be floating, not ", describe(x), "; convert it with astype"));
}

/// A parameter of the given shape in the compute dtype.
Tensor parameter(const Tensor& t, const char* what, const Dims& shape, const Tensor& x,
                 DType compute, const char* who) {
  require_floating(t, what, who);
  if (!(t.shape() == shape)) {
    throw ShapeError(message(who, ": ", what, " must have shape ", to_string(shape), " for ",
                             describe(x), ", not ", describe(t)));
  }
  return converted(t, compute, who);
}

void check_eps(double eps, const char* who) {
  if (eps >= 0) return;
  throw ValueError(message(who, ": eps must not be negative or NaN, got ", eps));
}

/// The first of the last axes that `normalized_shape` names.
int first_normalized(const Tensor& x, const Dims& normalized_shape, const char* who) {
  const int first = x.ndim() - normalized_shape.size();
  bool fits = first >= 0 && !normalized_shape.empty();
  for (int i = 0; fits && i < normalized_shape.size(); ++i) {
    fits = x.shape()[first + i] == normalized_shape[i];
  }
  if (fits) return first;
  throw ShapeError(message(who, ": the last axes of ", describe(x), " must be normalized_shape ",
                           to_string(normalized_shape), ", at least one of them"));
}

/// The result in the dtype that came in.
Tensor finished(std::vector<Tensor>& results, const Tensor& x, const char* who) {
  return converted(results[0], x.dtype(), who);
}

struct Channels {
  std::int64_t count;
  Dims beside;  ///< [C, 1, ...]: a parameter seen beside [N, C, ...]
};
Channels channels_of(const Tensor& x, const char* who) {
  if (x.ndim() < 2) {
    throw ShapeError(message(who, ": needs [N, C, ...], at least two axes, not ", describe(x)));
  }
  Dims beside(x.ndim() - 1, 1);
  beside[0] = x.shape()[1];
  return {x.shape()[1], beside};
}

OutputSpec wanted_or_empty(int mode, int bit, const Dims& shape, DType dtype) {
  return {(mode & bit) != 0 ? shape : Dims{0}, dtype};
}

/// Sizes before, or from, the first normalised axis.
Dims outer_shape(const OpCall& call, const Tensor& x) {
  Dims shape;
  for (int i = 0; i < call.attrs.as<NormAttrs>().axis; ++i) shape.push_back(x.shape()[i]);
  return shape;
}
Dims inner_shape(const OpCall& call, const Tensor& x) {
  Dims shape;
  for (int i = call.attrs.as<NormAttrs>().axis; i < x.ndim(); ++i) shape.push_back(x.shape()[i]);
  return shape;
}

}  // namespace

// x[, weight[, bias]].
std::vector<OutputSpec> infer_layer_norm(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  Dims stats{checked_numel(outer_shape(call, x), x.dtype(), call.name()), 2};
  return {{x.shape(), x.dtype()}, {stats, x.dtype()}};
}
std::vector<OutputSpec> infer_rms_norm(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  Dims stats{checked_numel(outer_shape(call, x), x.dtype(), call.name())};
  return {{x.shape(), x.dtype()}, {stats, x.dtype()}};
}
// g, x, the statistics[, weight].
std::vector<OutputSpec> infer_norm_backward(const OpCall& call) {
  const Tensor& x = *call.inputs[1];
  const int mode = call.attrs.as<NormAttrs>().wanted;
  const Dims inner = inner_shape(call, x);
  return {wanted_or_empty(mode, kWantX, x.shape(), x.dtype()),
          wanted_or_empty(mode, kWantWeight, inner, x.dtype()),
          wanted_or_empty(mode, kWantBias, inner, x.dtype())};
}

Tensor layer_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps) {
  const char* who = "layer_norm";
  require_floating(x, "x", who);
  check_eps(eps, who);
  const NormAttrs attrs{first_normalized(x, normalized_shape, who), eps};
  const DType compute = kernels::compute_dtype(x.dtype());
  const Tensor in = converted(x, compute, who);
  if (!weight.defined() && !bias.defined()) {
    std::vector<Tensor> results = run_many(OpId::layer_norm, {&in}, attrs);
    return finished(results, x, who);
  }
  const Tensor w = weight.defined() ? parameter(weight, "weight", normalized_shape, x, compute, who)
                                    : ones(normalized_shape, compute, x.device());
  if (!bias.defined()) {
    std::vector<Tensor> results = run_many(OpId::layer_norm, {&in, &w}, attrs);
    return finished(results, x, who);
  }
  const Tensor b = parameter(bias, "bias", normalized_shape, x, compute, who);
  std::vector<Tensor> results = run_many(OpId::layer_norm, {&in, &w, &b}, attrs);
  return finished(results, x, who);
}

Tensor rms_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  const char* who = "rms_norm";
  require_floating(x, "x", who);
  if (eps) check_eps(*eps, who);
  NormAttrs attrs;
  attrs.axis = first_normalized(x, normalized_shape, who);
  const DType compute = kernels::compute_dtype(x.dtype());
  // Half precision is computed in float32 and takes its epsilon, as in PyTorch.
  attrs.eps = eps.value_or(compute == DType::Float64
                               ? std::numeric_limits<double>::epsilon()
                               : static_cast<double>(std::numeric_limits<float>::epsilon()));
  const Tensor in = converted(x, compute, who);
  if (!weight.defined()) {
    std::vector<Tensor> results = run_many(OpId::rms_norm, {&in}, attrs);
    return finished(results, x, who);
  }
  const Tensor w = parameter(weight, "weight", normalized_shape, x, compute, who);
  std::vector<Tensor> results = run_many(OpId::rms_norm, {&in, &w}, attrs);
  return finished(results, x, who);
}

Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias,
                  double eps) {
  const char* who = "group_norm";
  require_floating(x, "x", who);
  check_eps(eps, who);
  const auto [channels, beside] = channels_of(x, who);
  if (groups < 1 || channels % groups != 0) {
    throw ValueError(message(who, ": ", channels, " channels (axis 1 of ", describe(x),
                             ") cannot be divided into ", groups, " groups of equal size"));
  }
  const DType compute = kernels::compute_dtype(x.dtype());
  Dims rest{channels / groups};
  for (int i = 2; i < x.ndim(); ++i) rest.push_back(x.shape()[i]);
  const Dims rows{checked_mul(x.shape()[0], groups, who), checked_numel(rest, compute, who)};
  Tensor w;
  Tensor b;
  if (weight.defined()) w = parameter(weight, "weight", {channels}, x, compute, who);
  if (bias.defined()) b = parameter(bias, "bias", {channels}, x, compute, who);
  const NormAttrs attrs{1, eps};
  const Tensor in = reshape(converted(x, compute, who), rows);
  Tensor y = reshape(run_many(OpId::layer_norm, {&in}, attrs, who)[0], x.shape());
  if (w.defined() && b.defined()) {
    y = addcmul(reshape(b, beside), y, reshape(w, beside));
  } else if (w.defined()) {
    y = y * reshape(w, beside);
  } else if (b.defined()) {
    y = y + reshape(b, beside);
  }
  return converted(y, x.dtype(), who);
}

// x, weight, bias[, mean, var]; the statistics: means, rstds and variances of the channels.
std::vector<OutputSpec> infer_batch_norm(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  return {{x.shape(), x.dtype()}, {{3, x.shape()[1]}, x.dtype()}};
}
// g, x, the statistics, weight.
std::vector<OutputSpec> infer_batch_norm_backward(const OpCall& call) {
  const Tensor& x = *call.inputs[1];
  const int mode = call.attrs.as<BatchNormAttrs>().wanted;
  const Dims channels{x.shape()[1]};
  return {wanted_or_empty(mode, kWantX, x.shape(), x.dtype()),
          wanted_or_empty(mode, kWantWeight, channels, x.dtype()),
          wanted_or_empty(mode, kWantBias, channels, x.dtype())};
}

Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight, const Tensor& bias, bool training, double momentum,
                  double eps) {
  const char* who = "batch_norm";
  require_floating(x, "x", who);
  check_eps(eps, who);
  const std::int64_t channels = channels_of(x, who).count;
  const Dims shape{channels};
  const DType compute = kernels::compute_dtype(x.dtype());
  Tensor mean;
  Tensor var;
  if (!training || running_mean.defined()) {
    mean = History::plain(parameter(running_mean, "running_mean", shape, x, compute, who));
  }
  if (!training || running_var.defined()) {
    var = History::plain(parameter(running_var, "running_var", shape, x, compute, who));
  }
  const Tensor w = weight.defined() ? parameter(weight, "weight", shape, x, compute, who)
                                    : ones(shape, compute, x.device());
  const Tensor b = bias.defined() ? parameter(bias, "bias", shape, x, compute, who)
                                  : zeros(shape, compute, x.device());
  const Tensor in = converted(x, compute, who);
  const BatchNormAttrs attrs{eps, training};
  if (!training) {
    std::vector<Tensor> results = run_many(OpId::batch_norm, {&in, &w, &b, &mean, &var}, attrs);
    return finished(results, x, who);
  }
  const std::int64_t count = channels == 0 ? 0 : x.numel() / channels;
  if (count == 1) {
    throw ValueError(message(who, ": in training each channel needs more than one value, and ",
                             describe(x),
                             " has one; use a larger batch, or the running statistics"));
  }
  std::vector<Tensor> results = run_many(OpId::batch_norm, {&in, &w, &b}, attrs);
  Tensor y = finished(results, x, who);
  // Everything that may fail comes before the first of the two is written. A batch of nothing
  // teaches nothing.
  if (x.numel() == 0) return y;
  const Tensor stats = History::plain(results[1]);
  const auto towards = [&](const Tensor& running, const Tensor& batch) {
    return running * (1 - momentum) + batch * momentum;
  };
  const double unbiased = static_cast<double>(count) / static_cast<double>(count - 1);
  Tensor next_mean;
  Tensor next_var;
  if (mean.defined()) next_mean = converted(towards(mean, stats[0]), running_mean.dtype(), who);
  if (var.defined())
    next_var = converted(towards(var, stats[2] * unbiased), running_var.dtype(), who);
  if (mean.defined()) copy_(History::plain(running_mean), next_mean);
  if (var.defined()) copy_(History::plain(running_var), next_var);
  return y;
}

}  // namespace baregrad

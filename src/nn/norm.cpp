// Normalisation as layers.
#include "baregrad/nn/norm.h"

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/message.h"
#include "core/rename.h"
#include "nn/check.h"
#include "nn/text.h"

namespace baregrad::nn {

// ---- LayerNorm, RMSNorm, GroupNorm --------------------------------------------------------------

LayerNorm::LayerNorm(const Dims& normalized_shape, const NormOptions& options)
    : normalized_shape_(normalized_shape), eps_(options.eps) {
  if (options.affine) {
    weight = in_name_of("LayerNorm", [&] { return ones(normalized_shape); });
    if (options.bias) bias = in_name_of("LayerNorm", [&] { return zeros(normalized_shape); });
  }
  register_parameter("weight", weight);
  register_parameter("bias", bias);
}

Tensor LayerNorm::forward(const Tensor& x) {
  return layer_norm(x, normalized_shape_, weight, bias, eps_);
}

std::string LayerNorm::extra_repr() const {
  return message(text_of(normalized_shape_), ", eps=", text_of(eps_),
                 ", elementwise_affine=", text_of(weight.defined()),
                 ", bias=", text_of(bias.defined()));
}

RMSNorm::RMSNorm(const Dims& normalized_shape, std::optional<double> eps, bool affine)
    : normalized_shape_(normalized_shape), eps_(eps) {
  if (affine) weight = in_name_of("RMSNorm", [&] { return ones(normalized_shape); });
  register_parameter("weight", weight);
}

Tensor RMSNorm::forward(const Tensor& x) { return rms_norm(x, normalized_shape_, weight, eps_); }

std::string RMSNorm::extra_repr() const {
  return message(text_of(normalized_shape_), ", eps=", eps_ ? text_of(*eps_) : "None",
                 ", elementwise_affine=", text_of(weight.defined()));
}

GroupNorm::GroupNorm(std::int64_t num_groups, std::int64_t num_channels, const NormOptions& options)
    : num_groups_(num_groups), num_channels_(num_channels), eps_(options.eps) {
  require_positive(num_groups, "num_groups", "GroupNorm");
  require_size(num_channels, "num_channels", "GroupNorm");
  if (num_channels % num_groups != 0) {
    throw ValueError(message("GroupNorm: ", num_channels, " channels cannot be divided into ",
                             num_groups, " groups"));
  }
  if (options.affine) {
    weight = in_name_of("GroupNorm", [&] { return ones({num_channels}); });
    if (options.bias) bias = in_name_of("GroupNorm", [&] { return zeros({num_channels}); });
  }
  register_parameter("weight", weight);
  register_parameter("bias", bias);
}

Tensor GroupNorm::forward(const Tensor& x) {
  if (x.defined() && (x.ndim() < 2 || x.shape()[1] != num_channels_)) {
    throw ShapeError(message("GroupNorm: needs [N, ", num_channels_, ", ...], not ", describe(x)));
  }
  return group_norm(x, num_groups_, weight, bias, eps_);
}

std::string GroupNorm::extra_repr() const {
  return message(num_groups_, ", ", num_channels_, ", eps=", text_of(eps_),
                 ", affine=", text_of(weight.defined()), ", bias=", text_of(bias.defined()));
}

// ---- BatchNorm ----------------------------------------------------------------------------------

BatchNorm::BatchNorm(const char* who, std::int64_t num_features, const BatchNormOptions& options,
                     int least_ndim, int most_ndim)
    : who_(who),
      num_features_(num_features),
      options_(options),
      least_ndim_(least_ndim),
      most_ndim_(most_ndim) {
  require_size(num_features, "num_features", who);
  if (options.affine) {
    weight = in_name_of(who, [&] { return ones({num_features}); });
    if (options.bias) bias = in_name_of(who, [&] { return zeros({num_features}); });
  }
  if (options.track_running_stats) {
    running_mean = in_name_of(who, [&] { return zeros({num_features}); });
    running_var = in_name_of(who, [&] { return ones({num_features}); });
    num_batches_tracked = zeros({}, DType::Int64);
  }
  register_parameter("weight", weight);
  register_parameter("bias", bias);
  register_buffer("running_mean", running_mean);
  register_buffer("running_var", running_var);
  register_buffer("num_batches_tracked", num_batches_tracked);
}

Tensor BatchNorm::forward(const Tensor& x) {
  require_defined(x, "x", who_);
  if (x.ndim() < least_ndim_ || x.ndim() > most_ndim_ || x.shape()[1] != num_features_) {
    const std::string start = message("[N, ", num_features_);
    throw ShapeError(message(who_, ": needs ", start,
                             most_ndim_ == 4 ? ", H, W]" : "] or " + start + ", L]", ", not ",
                             describe(x)));
  }
  if (!options_.track_running_stats) {
    return batch_norm(x, {}, {}, weight, bias, true, 0.0, options_.eps);
  }
  if (!is_training()) {
    return batch_norm(x, running_mean, running_var, weight, bias, false, 0.0, options_.eps);
  }
  const auto seen = static_cast<double>(num_batches_tracked.item<std::int64_t>());
  const double momentum = options_.momentum ? *options_.momentum : 1.0 / (seen + 1.0);
  Tensor y = batch_norm(x, running_mean, running_var, weight, bias, true, momentum, options_.eps);
  add_(num_batches_tracked, 1);
  return y;
}

std::string BatchNorm::extra_repr() const {
  return message(num_features_, ", eps=", text_of(options_.eps),
                 ", momentum=", options_.momentum ? text_of(*options_.momentum) : "None",
                 ", affine=", text_of(weight.defined()), ", bias=", text_of(bias.defined()),
                 ", track_running_stats=", text_of(options_.track_running_stats));
}

BatchNorm1d::BatchNorm1d(std::int64_t num_features, const BatchNormOptions& options)
    : BatchNorm("BatchNorm1d", num_features, options, 2, 3) {}
BatchNorm2d::BatchNorm2d(std::int64_t num_features, const BatchNormOptions& options)
    : BatchNorm("BatchNorm2d", num_features, options, 4, 4) {}

}  // namespace baregrad::nn

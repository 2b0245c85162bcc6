// Counts operations and bytes.
#include "profile/work.h"

namespace baregrad::profile {

namespace {

std::uint64_t elements(const Tensor& t) { return static_cast<std::uint64_t>(t.numel()); }

/// Elements that an axis repeats (stride 0) count once.
std::uint64_t bytes_of(const Tensor& t) {
  if (t.numel() == 0) return 0;
  std::uint64_t distinct = 1;
  for (int i = 0; i < t.ndim(); ++i) {
    if (t.strides()[i] != 0) distinct *= static_cast<std::uint64_t>(t.shape()[i]);
  }
  return distinct * itemsize(t.dtype());
}

std::uint64_t product_flops(const OpCall& call, const Tensor& result) {
  const Tensor& left = *call.inputs[call.op == OpId::addmm ? 1 : 0];
  const auto depth = static_cast<std::uint64_t>(left.shape().back());
  const bool adds = call.inputs.size() == 3 || call.attrs.or_default<ProductAttrs>().accumulate;
  const bool activates = call.attrs.or_default<ProductAttrs>().activation != Activation::None;
  return elements(result) * (2 * depth + (adds ? 1 : 0) + (activates ? 1 : 0));
}

/// One multiply-add per position of each window.
std::uint64_t conv_flops(const OpCall& call, const Tensor& result) {
  const bool weight = call.op == OpId::conv2d_weight;
  const Dims& filters = weight ? result.shape() : call.inputs[1]->shape();
  const Tensor& windows = call.op == OpId::conv2d         ? result
                          : call.op == OpId::conv2d_input ? *call.inputs[0]
                                                          : *call.inputs[1];
  const std::int64_t places = filters[1] * filters[2] * filters[3];
  const std::uint64_t bias = call.inputs.size() > 2 ? 1 : 0;
  return elements(windows) * (2 * static_cast<std::uint64_t>(places) + bias);
}

std::uint64_t window_of(const OpCall& call) {
  const Dims& kernel = call.attrs.as<PoolAttrs>().kernel;
  return static_cast<std::uint64_t>(kernel[0]) * static_cast<std::uint64_t>(kernel[1]);
}

std::uint64_t irregular_flops(const OpCall& call, const Tensor& result) {
  switch (call.op) {
    case OpId::conv2d:
    case OpId::conv2d_input:
    case OpId::conv2d_weight:
      return conv_flops(call, result);
    case OpId::max_pool2d:
    case OpId::avg_pool2d:
      return elements(result) * window_of(call);
    case OpId::avg_pool2d_backward:
      return elements(*call.inputs[0]) * window_of(call);
    case OpId::cumulative_sum:
    case OpId::cumulative_prod:
    case OpId::cumulative_max:
    case OpId::softmax:
    case OpId::log_softmax:
    case OpId::logsumexp:
    case OpId::cross_entropy:
    case OpId::layer_norm:
    case OpId::rms_norm:
    case OpId::batch_norm:
    // The first input is the gradient of the result, which has the size of the input.
    case OpId::layer_norm_backward:
    case OpId::rms_norm_backward:
    case OpId::batch_norm_backward:
      return elements(*call.inputs[0]);
    case OpId::cross_entropy_backward:
      return elements(result);
    default:
      return 0;
  }
}

std::uint64_t flops_of(const OpCall& call, const Tensor& result) {
  const Family family = op_info(call.op).family;
  if (is_elementwise(family)) return elements(result);
  if (family == Family::Reduce || family == Family::ArgReduce) return elements(*call.inputs[0]);
  return family == Family::Product ? product_flops(call, result) : irregular_flops(call, result);
}

}  // namespace

Work work_of(const OpCall& call, std::span<const Tensor> results) {
  Work work;
  if (results.empty() || op_info(call.op).family == Family::View) return work;
  work.flops = flops_of(call, results[0]);
  for (const Tensor* t : call.inputs) work.bytes += bytes_of(*t);
  for (const Tensor& t : results) work.bytes += bytes_of(t);
  return work;
}

}  // namespace baregrad::profile

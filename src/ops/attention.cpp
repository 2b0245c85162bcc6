// Scaled dot-product attention: one fused op; plain ops where a mask wants its gradient.
#include <cmath>
#include <limits>

#include "backends/cpu/abi.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/history.h"
#include "core/message.h"
#include "ops/dispatch.h"
#include "ops/fused.h"
#include "ops/infer.h"
#include "ops/internal_ops.h"
#include "ops/positions.h"

namespace baregrad {

namespace {

constexpr const char* kAttention = "scaled_dot_product_attention";

Dims leading(const Tensor& t) {
  Dims dims;
  for (int i = 0; i < t.ndim() - 2; ++i) dims.push_back(t.shape()[i]);
  return dims;
}

Dims with_matrix(Dims lead, std::int64_t rows, std::int64_t cols) {
  lead.push_back(rows);
  lead.push_back(cols);
  return lead;
}

std::string describe_all(const Tensor& q, const Tensor& k, const Tensor& v) {
  return message("q ", describe(q), ", k ", describe(k), " and v ", describe(v));
}

void check_arguments(const Tensor& q, const Tensor& k, const Tensor& v) {
  require_defined(q, "q", kAttention);
  require_defined(k, "k", kAttention);
  require_defined(v, "v", kAttention);
  if (q.ndim() < 2 || k.ndim() < 2 || v.ndim() < 2) {
    throw ShapeError(message(kAttention, ": needs [..., T, E], [..., S, E] and [..., S, F], not ",
                             describe_all(q, k, v)));
  }
  if (!is_floating(q.dtype()) || k.dtype() != q.dtype() || v.dtype() != q.dtype()) {
    throw DTypeError(message(kAttention, ": needs one floating dtype, not ", describe_all(q, k, v),
                             "; convert with astype"));
  }
  if (q.shape().back() != k.shape().back()) {
    throw ShapeError(message(kAttention, ": sizes ", q.shape().back(), " and ", k.shape().back(),
                             " differ along the last axis of q and k in ", describe_all(q, k, v)));
  }
  if (k.shape()[k.ndim() - 2] != v.shape()[v.ndim() - 2]) {
    throw ShapeError(message(kAttention, ": k has ", k.shape()[k.ndim() - 2], " positions and v ",
                             v.shape()[v.ndim() - 2], " (axis -2) in ", describe_all(q, k, v)));
  }
}

/// Leading axes of all three.
Dims common_leading(const Tensor& q, const Tensor& k, const Tensor& v) {
  Dims lead;
  if (broadcast_shapes(leading(q), leading(k), lead) &&
      broadcast_shapes(Dims(lead), leading(v), lead)) {
    return lead;
  }
  throw ShapeError(
      message(kAttention, ": the leading axes do not broadcast in ", describe_all(q, k, v)));
}

/// In the compute dtype, with these leading axes.
Tensor operand(const Tensor& t, const Dims& lead, DType compute) {
  const Tensor as = converted(t, compute, kAttention);
  const Dims shape = with_matrix(lead, t.shape()[t.ndim() - 2], t.shape().back());
  return shape == as.shape() ? as : repeated_to(as, shape, kAttention);
}

Tensor checked_mask(const Tensor& mask, const Dims& scores, DType compute) {
  if (!is_bool(mask.dtype()) && !is_floating(mask.dtype())) {
    throw DTypeError(message(kAttention,
                             ": the mask must be bool (true: look) or floating (added), not ",
                             describe(mask)));
  }
  Dims shape;
  if (!broadcast_shapes(mask.shape(), scores, shape) || !(shape == scores)) {
    throw ShapeError(message(kAttention, ": the mask ", describe(mask),
                             " does not broadcast to [..., T, S], ", to_string(scores)));
  }
  return is_bool(mask.dtype()) ? mask : converted(mask, compute, kAttention);
}

}  // namespace

Tensor attention_weights(const Tensor& q, const Tensor& k, const Tensor& mask, bool causal,
                         double scale) {
  const double nothing = -std::numeric_limits<double>::infinity();
  Tensor scores = matmul(q * scale, k.mT());
  if (mask.defined()) {
    scores = is_bool(mask.dtype()) ? where(mask, scores, nothing) : scores + mask;
  }
  if (causal) {
    const Dims shape{q.shape()[q.ndim() - 2], k.shape()[k.ndim() - 2]};
    scores = where(tril(ones(shape, DType::Bool, q.device())), scores, nothing);
  }
  if (scores.shape().back() == 0) return scores;
  if (!mask.defined()) return softmax(scores, -1);
  const Tensor blind = all(scores == nothing, -1, true);
  return where(blind, 0.0, softmax(where(blind, 0.0, scores), -1));
}

// q, k, v[, mask], all with the same leading axes.
std::vector<OutputSpec> infer_attention(const OpCall& call) {
  const Tensor& q = *call.inputs[0];
  const Dims lead = leading(q);
  const std::int64_t queries = q.shape()[q.ndim() - 2];
  Dims rows = lead;
  rows.push_back(queries);
  return {{with_matrix(lead, queries, call.inputs[2]->shape().back()), q.dtype()},
          {rows, q.dtype()}};
}
// g, q, k, v, the result, the logsumexps[, mask].
std::vector<OutputSpec> infer_attention_backward(const OpCall& call) {
  std::vector<OutputSpec> specs;
  for (int k = 1; k <= 3; ++k) {
    const Tensor& t = *call.inputs[static_cast<std::size_t>(k)];
    specs.push_back({t.shape(), t.dtype()});
  }
  return specs;
}

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options) {
  check_arguments(q, k, v);
  const Dims lead = common_leading(q, k, v);
  const DType compute = kernels::compute_dtype(q.dtype());
  // Without depth all scores are 0, whatever they are scaled by.
  const double depth = std::fmax(1.0, static_cast<double>(q.shape().back()));
  const double scale = options.scale.value_or(1.0 / std::sqrt(depth));
  const Tensor queries = operand(q, lead, compute);
  const Tensor keys = operand(k, lead, compute);
  const Tensor values = operand(v, lead, compute);
  const AttentionAttrs attrs{scale, options.causal};
  if (!options.mask.defined()) {
    const std::vector<Tensor> results =
        run_many(OpId::attention, {&queries, &keys, &values}, attrs, kAttention);
    return converted(results[0], q.dtype(), kAttention);
  }
  const Dims scores = with_matrix(lead, q.shape()[q.ndim() - 2], k.shape()[k.ndim() - 2]);
  const Tensor mask = checked_mask(options.mask, scores, compute);
  if (History::recording() && mask.requires_grad()) {
    const Tensor weights = attention_weights(queries, keys, mask, options.causal, scale);
    return converted(matmul(weights, values), q.dtype(), kAttention);
  }
  const Tensor seen = repeated_to(mask, scores, kAttention);
  const std::vector<Tensor> results =
      run_many(OpId::attention, {&queries, &keys, &values, &seen}, attrs, kAttention);
  return converted(results[0], q.dtype(), kAttention);
}

}  // namespace baregrad

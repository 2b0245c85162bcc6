// MultiheadAttention.
#include "baregrad/nn/attention.h"

#include <cmath>
#include <limits>

#include "baregrad/error.h"
#include "baregrad/nn/init.h"
#include "baregrad/ops.h"
#include "baregrad/ops_fused.h"
#include "core/checked.h"
#include "core/message.h"
#include "core/rename.h"
#include "nn/check.h"
#include "nn/name_scope.h"
#include "nn/parts.h"

namespace baregrad::nn {

namespace {

constexpr const char* kWho = "MultiheadAttention";
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// [L, N, E] -> [N, heads, L, E / heads], a view.
Tensor split_heads(const Tensor& x, std::int64_t heads) {
  const Dims& s = x.shape();
  return permute_dims(reshape(x, {s[0], s[1], heads, s[2] / heads}), {1, 2, 0, 3});
}

/// The inverse of split_heads.
Tensor join_heads(const Tensor& x) {
  const Dims& s = x.shape();
  return reshape(permute_dims(x, {2, 0, 1, 3}), {s[2], s[0], s[1] * s[3]});
}

void check_mask(const Tensor& mask, const char* what) {
  if (is_bool(mask.dtype()) || is_floating(mask.dtype())) return;
  throw DTypeError(message(kWho, ": ", what,
                           " must be bool (true: do not look) or floating (added), not ",
                           describe(mask)));
}

/// A mask of either kind as numbers that are added to the scores.
Tensor as_added(const Tensor& mask, DType dtype) {
  if (!is_bool(mask.dtype())) return mask.to(dtype);
  return where(mask, Tensor::scalar(-kInfinity, dtype), Tensor::scalar(0.0, dtype));
}

}  // namespace

MultiheadAttention::MultiheadAttention(std::int64_t embed_dim, std::int64_t num_heads,
                                       const MultiheadAttentionOptions& options)
    : embed_dim_(embed_dim), num_heads_(num_heads), options_(options) {
  require_positive(embed_dim, "embed_dim", kWho);
  require_positive(num_heads, "num_heads", kWho);
  require_probability(options.dropout, kWho);
  if (embed_dim % num_heads != 0) {
    throw ValueError(
        message(kWho, ": embed_dim ", embed_dim, " cannot be divided into ", num_heads, " heads"));
  }
  const std::int64_t kdim = options.kdim.value_or(embed_dim);
  const std::int64_t vdim = options.vdim.value_or(embed_dim);
  require_positive(kdim, "kdim", kWho);
  require_positive(vdim, "vdim", kWho);
  const std::int64_t rows = checked_mul(3, embed_dim, kWho);
  if (kdim == embed_dim && vdim == embed_dim) {
    in_proj_weight = in_name_of(kWho, [&] { return empty({rows, embed_dim}); });
  } else {
    q_proj_weight = in_name_of(kWho, [&] { return empty({embed_dim, embed_dim}); });
    k_proj_weight = in_name_of(kWho, [&] { return empty({embed_dim, kdim}); });
    v_proj_weight = in_name_of(kWho, [&] { return empty({embed_dim, vdim}); });
  }
  if (options.bias) in_proj_bias = in_name_of(kWho, [&] { return empty({rows}); });
  register_parameter("q_proj_weight", q_proj_weight);
  register_parameter("k_proj_weight", k_proj_weight);
  register_parameter("v_proj_weight", v_proj_weight);
  register_parameter("in_proj_weight", in_proj_weight);
  register_parameter("in_proj_bias", in_proj_bias);
  out_proj = register_module("out_proj", make<Linear>(embed_dim, embed_dim, options.bias,
                                                      Activation::None, options.generator));
  reset_parameters(options.generator);
}

void MultiheadAttention::reset_parameters(Generator* generator) {
  for (const Tensor& t : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight}) {
    if (t.defined()) init::xavier_uniform_(t, 1.0, generator);
  }
  if (in_proj_bias.defined()) {
    init::zeros_(in_proj_bias);
    init::zeros_(out_proj->bias);
  }
}

MultiheadAttention::Projected MultiheadAttention::project(const Tensor& query, const Tensor& key,
                                                          const Tensor& value) const {
  const bool packed = in_proj_weight.defined();
  if (packed && query.is_same(key) && key.is_same(value)) {
    const std::vector<Tensor> parts = parts_of(linear(query, in_proj_weight, in_proj_bias), 3);
    return {parts[0], parts[1], parts[2]};
  }
  const auto part_of = [&](const Tensor& t, std::int64_t which) {
    return t.defined() ? narrow(t, 0, which * embed_dim_, embed_dim_) : t;
  };
  const auto of = [&](const Tensor& x, std::int64_t which, const Tensor& own) {
    return linear(x, packed ? part_of(in_proj_weight, which) : own, part_of(in_proj_bias, which));
  };
  return {of(query, 0, q_proj_weight), of(key, 1, k_proj_weight), of(value, 2, v_proj_weight)};
}

/// All masks as one that broadcasts to [N, heads, T, S], for scaled_dot_product_attention: bool,
/// where true includes a position, or floats. Undefined without a mask.
Tensor MultiheadAttention::merged_mask(const AttentionMasks& masks, const Tensor& q,
                                       const Tensor& k) const {
  const std::int64_t n = q.shape()[0];
  const std::int64_t t = q.shape()[2];
  const std::int64_t s = k.shape()[2];
  Tensor padding = masks.key_padding;
  Tensor attention = masks.attention;
  if (padding.defined()) {
    check_mask(padding, "the key padding mask");
    if (!(padding.shape() == Dims{n, s}) && !(n == 1 && padding.shape() == Dims{s})) {
      throw ShapeError(message(kWho, ": the key padding mask is ", describe(padding),
                               ", needed is ", baregrad::to_string(Dims{n, s})));
    }
    padding = reshape(padding, {n, 1, 1, s});
  }
  if (attention.defined()) {
    check_mask(attention, "the attention mask");
    const Dims each = {n * num_heads_, t, s};
    if (attention.shape() == each) {
      attention = reshape(attention, {n, num_heads_, t, s});
    } else if (!(attention.shape() == Dims{t, s})) {
      throw ShapeError(message(kWho, ": the attention mask is ", describe(attention),
                               ", needed is ", baregrad::to_string(Dims{t, s}), " or ",
                               baregrad::to_string(each)));
    }
  }
  if (!padding.defined() && !attention.defined()) return {};
  if (!padding.defined() || !attention.defined()) {
    const Tensor& one = padding.defined() ? padding : attention;
    return is_bool(one.dtype()) ? logical_not(one) : one.to(q.dtype());
  }
  if (is_bool(padding.dtype()) && is_bool(attention.dtype())) {
    return logical_not(logical_or(padding, attention));
  }
  return as_added(padding, q.dtype()) + as_added(attention, q.dtype());
}

MultiheadAttention::Output MultiheadAttention::run(const Tensor& query, const Tensor& key,
                                                   const Tensor& value, const AttentionMasks& masks,
                                                   bool want_weights, bool average) {
  require_defined(query, "query", kWho);
  require_defined(key, "key", kWho);
  require_defined(value, "value", kWho);
  const int ndim = query.ndim();
  const bool batched = ndim == 3;
  const int time = batched && options_.batch_first ? 1 : 0;
  const std::int64_t kdim = options_.kdim.value_or(embed_dim_);
  const std::int64_t vdim = options_.vdim.value_or(embed_dim_);
  if ((ndim != 2 && ndim != 3) || key.ndim() != ndim || value.ndim() != ndim ||
      query.shape().back() != embed_dim_ || key.shape().back() != kdim ||
      value.shape().back() != vdim || key.shape()[time] != value.shape()[time] ||
      (batched && (query.shape()[1 - time] != key.shape()[1 - time] ||
                   key.shape()[1 - time] != value.shape()[1 - time]))) {
    throw ShapeError(message(
        kWho, ": query ", describe(query), ", key ", describe(key), ", value ", describe(value),
        " do not fit; with T and S steps needed", " are sizes ", embed_dim_, ", ", kdim, ", ", vdim,
        " in the last axis,", options_.batch_first ? " [N, T, size]" : " [T, N, size]",
        " or without N, one S and one N for all"));
  }
  const auto arranged = [&](const Tensor& x) {
    return !batched ? expand_dims(x, {1}) : options_.batch_first ? swapaxes(x, 0, 1) : x;
  };
  // Self-attention: the three projections of one tensor are one product.
  const Tensor first = arranged(query);
  const Tensor second = key.is_same(query) ? first : arranged(key);
  const Tensor third = value.is_same(key) ? second : arranged(value);
  const Projected in = project(first, second, third);
  const Tensor q = split_heads(in.q, num_heads_);
  const Tensor k = split_heads(in.k, num_heads_);
  const Tensor v = split_heads(in.v, num_heads_);
  Tensor mask = merged_mask(masks, q, k);
  const bool drops = options_.dropout > 0.0 && is_training();
  Tensor mixed;
  Tensor weights;
  if (!drops && !want_weights) {
    mixed = scaled_dot_product_attention(q, k, v, {.mask = mask, .causal = masks.causal});
  } else {
    Tensor scores = matmul(q, k.mT()) * (1.0 / std::sqrt(static_cast<double>(q.shape()[3])));
    if (masks.causal) {
      const Tensor later = triu(ones({q.shape()[2], k.shape()[2]}, DType::Bool, q.device()), 1);
      scores = masked_fill(scores, later, -kInfinity);
    }
    if (mask.defined()) {
      scores = is_bool(mask.dtype()) ? masked_fill(scores, logical_not(mask), -kInfinity)
                                     : scores + mask;
    }
    weights = dropout(softmax(scores, -1), options_.dropout, drops, options_.generator);
    mixed = matmul(weights, v);
    if (average) weights = mean(weights, 1);
    if (!batched) weights = squeeze(weights, 0);
  }
  const Tensor out = (*out_proj)(join_heads(mixed));
  const Tensor placed = !batched               ? squeeze(out, 1)
                        : options_.batch_first ? swapaxes(out, 0, 1)
                                               : out;
  return {placed, want_weights ? weights : Tensor()};
}

Tensor MultiheadAttention::forward(const Tensor& x) { return run(x, x, x, {}, false, true).output; }

Tensor MultiheadAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                   const AttentionMasks& masks) {
  const NameScope scope(*this);
  return run(query, key, value, masks, false, true).output;
}

MultiheadAttention::Output MultiheadAttention::forward_with_weights(const Tensor& query,
                                                                    const Tensor& key,
                                                                    const Tensor& value,
                                                                    const AttentionMasks& masks,
                                                                    bool average) {
  const NameScope scope(*this);
  return run(query, key, value, masks, true, average);
}

}  // namespace baregrad::nn

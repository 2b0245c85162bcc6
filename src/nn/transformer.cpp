// TransformerEncoderLayer.
#include "baregrad/nn/attention.h"
#include "baregrad/ops.h"
#include "nn/name_scope.h"

namespace baregrad::nn {

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t d_model, std::int64_t nhead,
                                                 const TransformerEncoderLayerOptions& options)
    : activation_(options.activation), norm_first_(options.norm_first) {
  Generator* generator = options.generator;
  const NormOptions norm = {.eps = options.layer_norm_eps, .bias = options.bias};
  self_attn = register_module(
      "self_attn",
      make<MultiheadAttention>(d_model, nhead,
                               MultiheadAttentionOptions{.dropout = options.dropout,
                                                         .bias = options.bias,
                                                         .batch_first = options.batch_first,
                                                         .generator = generator}));
  linear1 = register_module("linear1", make<Linear>(d_model, options.dim_feedforward, options.bias,
                                                    Activation::None, generator));
  dropout = register_module("dropout", make<Dropout>(options.dropout, generator));
  linear2 = register_module("linear2", make<Linear>(options.dim_feedforward, d_model, options.bias,
                                                    Activation::None, generator));
  norm1 = register_module("norm1", make<LayerNorm>(d_model, norm));
  norm2 = register_module("norm2", make<LayerNorm>(d_model, norm));
  dropout1 = register_module("dropout1", make<Dropout>(options.dropout, generator));
  dropout2 = register_module("dropout2", make<Dropout>(options.dropout, generator));
}

Tensor TransformerEncoderLayer::attend(const Tensor& x, const AttentionMasks& masks) {
  return (*dropout1)(self_attn->forward(x, x, x, masks));
}

Tensor TransformerEncoderLayer::feed(const Tensor& x) {
  // The activation is fused into the product here; linear1 itself has none, as in PyTorch.
  const auto first = [&] {
    const NameScope scope(*linear1);
    return linear(x, linear1->weight, linear1->bias, activation_);
  };
  return (*dropout2)((*linear2)((*dropout)(first())));
}

Tensor TransformerEncoderLayer::forward(const Tensor& x) { return run(x, {}); }

Tensor TransformerEncoderLayer::forward(const Tensor& x, const AttentionMasks& masks) {
  const NameScope scope(*this);
  return run(x, masks);
}

Tensor TransformerEncoderLayer::run(const Tensor& x, const AttentionMasks& masks) {
  if (norm_first_) {
    const Tensor y = x + attend((*norm1)(x), masks);
    return y + feed((*norm2)(y));
  }
  const Tensor y = (*norm1)(x + attend(x, masks));
  return (*norm2)(y + feed(y));
}

}  // namespace baregrad::nn

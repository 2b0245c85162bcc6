// MultiheadAttention and the encoder layer of a transformer.
#pragma once

#include <optional>

#include "baregrad/activation.h"
#include "baregrad/generator.h"
#include "baregrad/nn/layers.h"
#include "baregrad/nn/norm.h"

namespace baregrad::nn {

struct MultiheadAttentionOptions {
  double dropout = 0.0;  ///< of the attention weights in training
  bool bias = true;
  bool batch_first = false;               ///< [N, T, E] instead of [T, N, E]
  std::optional<std::int64_t> kdim = {};  ///< sizes of keys and values; default: embed_dim
  std::optional<std::int64_t> vdim = {};
  Generator* generator = nullptr;  ///< of the first weights and of dropout
};

/// PyTorch's masks: a true excludes a position, floats are added to the scores.
struct AttentionMasks {
  Tensor key_padding = {};  ///< [N, S], or [S] without a batch
  Tensor attention = {};    ///< [T, S], or [N * heads, T, S]
  bool causal = false;      ///< position t attends to positions up to t
};

/// Parameters in_proj_weight [3E, E] (or q_, k_, v_proj_weight where kdim or vdim differ),
/// in_proj_bias [3E], out_proj.weight, out_proj.bias. The T x S attention weights are stored only
/// if they are requested or dropout is applied to them.
class BAREGRAD_API MultiheadAttention : public Module {
 public:
  MultiheadAttention(std::int64_t embed_dim, std::int64_t num_heads,
                     const MultiheadAttentionOptions& options = {});
  /// Self-attention without masks.
  Tensor forward(const Tensor& x) override;
  /// query [T, N, E], key [S, N, kdim], value [S, N, vdim]; the batch axis is optional.
  Tensor forward(const Tensor& query, const Tensor& key, const Tensor& value,
                 const AttentionMasks& masks = {});
  struct Output {
    Tensor output;
    Tensor weights;  ///< [N, T, S], the mean over the heads, or [N, heads, T, S]
  };
  Output forward_with_weights(const Tensor& query, const Tensor& key, const Tensor& value,
                              const AttentionMasks& masks = {}, bool average = true);
  void reset_parameters(Generator* generator = nullptr);

  Tensor in_proj_weight;
  Tensor q_proj_weight;
  Tensor k_proj_weight;
  Tensor v_proj_weight;
  Tensor in_proj_bias;
  std::shared_ptr<Linear> out_proj;

 private:
  struct Projected {
    Tensor q;
    Tensor k;
    Tensor v;
  };
  Projected project(const Tensor& query, const Tensor& key, const Tensor& value) const;
  Tensor merged_mask(const AttentionMasks& masks, const Tensor& q, const Tensor& k) const;
  Output run(const Tensor& query, const Tensor& key, const Tensor& value,
             const AttentionMasks& masks, bool want_weights, bool average);

  std::int64_t embed_dim_;
  std::int64_t num_heads_;
  MultiheadAttentionOptions options_;
};

struct TransformerEncoderLayerOptions {
  std::int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  Activation activation = Activation::Relu;
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;
  bool bias = true;
  Generator* generator = nullptr;  ///< of the first weights and of dropout
};

/// Self-attention and two linear layers, each with a residual and a LayerNorm.
class BAREGRAD_API TransformerEncoderLayer : public Module {
 public:
  TransformerEncoderLayer(std::int64_t d_model, std::int64_t nhead,
                          const TransformerEncoderLayerOptions& options = {});
  Tensor forward(const Tensor& x) override;
  Tensor forward(const Tensor& x, const AttentionMasks& masks);

  std::shared_ptr<MultiheadAttention> self_attn;
  std::shared_ptr<Linear> linear1;
  std::shared_ptr<Dropout> dropout;
  std::shared_ptr<Linear> linear2;
  std::shared_ptr<LayerNorm> norm1;
  std::shared_ptr<LayerNorm> norm2;
  std::shared_ptr<Dropout> dropout1;
  std::shared_ptr<Dropout> dropout2;

 private:
  Tensor run(const Tensor& x, const AttentionMasks& masks);
  Tensor attend(const Tensor& x, const AttentionMasks& masks);
  Tensor feed(const Tensor& x);

  Activation activation_;
  bool norm_first_;
};

}  // namespace baregrad::nn

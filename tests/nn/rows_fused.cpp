// Rows of golden.txt: normalisation, attention, cross-entropy.
#include "tests/nn/support.h"

namespace baregrad {

using nn::make;

namespace {

GoldenRow cross_entropy_row(std::string name, const CrossEntropyOptions& options) {
  return row_of<nn::CrossEntropyLoss>(
      std::move(name), [options] { return make<nn::CrossEntropyLoss>(options); },
      [](nn::CrossEntropyLoss& l, const Tensors& in) { return Tensors{l(in[0], in[1])}; });
}

}  // namespace

std::vector<GoldenRow> norm_rows() {
  using Batch = nn::BatchNormOptions;
  using Norm = nn::NormOptions;
  return {
      one_input<nn::LayerNorm>("layer_norm", 4),
      one_input<nn::LayerNorm>("layer_norm_two_axes", Dims{3, 4}, Norm{.eps = 1e-3, .bias = false}),
      one_input<nn::LayerNorm>("layer_norm_plain", 4, Norm{.affine = false}),
      one_input<nn::RMSNorm>("rms_norm", 4),
      one_input<nn::RMSNorm>("rms_norm_eps", Dims{4}, 1e-3, false),
      one_input<nn::GroupNorm>("group_norm", 2, 4),
      one_input<nn::GroupNorm>("group_norm_plain", 3, 3, Norm{.affine = false}),
      one_input<nn::BatchNorm1d>("batch_norm1d", 3),
      one_input<nn::BatchNorm1d>("batch_norm1d_eval", 3),
      one_input<nn::BatchNorm1d>("batch_norm1d_average", 3, Batch{.momentum = {}}),
      one_input<nn::BatchNorm1d>("batch_norm1d_untracked", 3, Batch{.track_running_stats = false}),
      one_input<nn::BatchNorm2d>("batch_norm2d", 2),
      one_input<nn::BatchNorm2d>("batch_norm2d_plain", 2,
                                 Batch{.eps = 1e-3, .momentum = 0.3, .affine = false}),
      cross_entropy_row("cross_entropy_none", {.reduction = Reduction::None}),
      cross_entropy_row("cross_entropy_mean", {}),
      cross_entropy_row("cross_entropy_sum", {.reduction = Reduction::Sum}),
      cross_entropy_row("cross_entropy_weight_ignore", {.weight = ones({3}), .ignore_index = 1}),
      cross_entropy_row("cross_entropy_smooth", {.label_smoothing = 0.1}),
      cross_entropy_row("cross_entropy_probabilities", {}),
  };
}

std::vector<GoldenRow> attention_rows() {
  using Options = nn::MultiheadAttentionOptions;
  using Attention = nn::MultiheadAttention;
  using Encoder = nn::TransformerEncoderLayer;
  using EncoderOptions = nn::TransformerEncoderLayerOptions;
  const auto batch_first = [] { return make<Attention>(4, 2, Options{.batch_first = true}); };
  const auto self = [](const nn::AttentionMasks& masks) {
    return [masks](Attention& m, const Tensors& in) {
      return Tensors{m.forward(in[0], in[0], in[0], masks)};
    };
  };
  const auto cross = [](Attention& m, const Tensors& in) {
    return Tensors{m.forward(in[0], in[1], in[2])};
  };
  const auto masked = [](Attention& m, const Tensors& in) {
    return Tensors{m.forward(in[0], in[0], in[0], {.key_padding = in[1], .attention = in[2]})};
  };
  return {
      one_input<Attention>("attention", 4, 2),
      row_of<Attention>("attention_cross", batch_first, cross),
      row_of<Attention>(
          "attention_sizes",
          [] { return make<Attention>(4, 2, Options{.bias = false, .kdim = 3, .vdim = 5}); },
          cross),
      row_of<Attention>("attention_causal", batch_first, self({.causal = true})),
      row_of<Attention>("attention_masks", batch_first, masked),
      row_of<Attention>("attention_float_masks", batch_first, masked),
      one_input<Attention>("attention_unbatched", 4, 2),
      row_of<Attention>("attention_weights", batch_first,
                        [](Attention& m, const Tensors& in) {
                          const auto out = m.forward_with_weights(in[0], in[1], in[1]);
                          return Tensors{out.output, out.weights};
                        }),
      one_input<Encoder>("encoder_layer", 4, 2, EncoderOptions{.dim_feedforward = 6}),
      one_input<Encoder>("encoder_layer_norm_first", 4, 2,
                         EncoderOptions{.dim_feedforward = 5,
                                        .dropout = 0.0,
                                        .activation = Activation::Gelu,
                                        .batch_first = true,
                                        .norm_first = true,
                                        .bias = false}),
      row_of<Encoder>(
          "encoder_layer_masks",
          [] {
            return make<Encoder>(
                4, 2, EncoderOptions{.dim_feedforward = 5, .dropout = 0.0, .batch_first = true});
          },
          [](Encoder& m, const Tensors& in) {
            return Tensors{m.forward(in[0], {.key_padding = in[1], .causal = true})};
          }),
  };
}

}  // namespace baregrad

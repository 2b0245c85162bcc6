// MultiheadAttention and TransformerEncoderLayer: masks, both implementations, dropout, errors.
#include <cmath>
#include <limits>

#include "tests/nn/support.h"

namespace baregrad {
namespace {

using Attention = nn::MultiheadAttention;

Tensor flags(std::vector<double> values, const Dims& shape) {
  return Tensor::of<double>(values, shape).to(DType::Bool);
}

/// The fused implementation and the one that returns weights.
void expect_one_result(Attention& layer, const Tensor& x, const nn::AttentionMasks& masks) {
  const Tensor fused = layer.forward(x, x, x, masks);
  const Attention::Output kept = layer.forward_with_weights(x, x, x, masks);
  EXPECT_TRUE(near(fused, kept.output, 1e-12, 1e-13));
  EXPECT_TRUE(near(sum(kept.weights, -1), ones({2, 4}, float64), 1e-12, 0));
}

TEST(Attention, BothWaysAgreeUnderEveryMask) {
  Attention layer(6, 3, {.batch_first = true});
  layer.to(float64);
  const Tensor x = randn({2, 4, 6}, float64);
  const Tensor padding = flags({0, 0, 0, 1, 0, 1, 0, 0}, {2, 4});
  const Tensor later = triu(ones({4, 4}, DType::Bool), 1);
  const Tensor added = randn({4, 4}, float64);
  const Tensor each = randn({6, 4, 4}, float64);
  expect_one_result(layer, x, {});
  expect_one_result(layer, x, {.causal = true});
  expect_one_result(layer, x, {.key_padding = padding});
  expect_one_result(layer, x, {.attention = later});
  expect_one_result(layer, x, {.attention = added});
  expect_one_result(layer, x, {.attention = each});
  expect_one_result(layer, x, {.attention = each, .causal = true});
  expect_one_result(layer, x, {.key_padding = padding, .attention = later});
  expect_one_result(layer, x, {.key_padding = padding, .attention = added});
  expect_one_result(layer, x, {.key_padding = padding, .causal = true});
  EXPECT_TRUE(near(layer.forward(x, x, x, {.attention = later}),
                   layer.forward(x, x, x, {.causal = true}), 1e-12, 1e-13));
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(
      near(layer.forward(x, x, x, {.attention = where(later, -inf, zeros({4, 4}, float64))}),
           layer.forward(x, x, x, {.causal = true}), 1e-12, 1e-13));
}

TEST(Attention, CausalLooksBackOnly) {
  Attention layer(4, 2);
  layer.to(float64);
  const Tensor x = randn({5, 1, 4}, float64);
  const Tensor changed = x.clone();
  changed[4].fill_(9.0);
  const Tensor before = layer.forward(x, x, x, {.causal = true});
  const Tensor after = layer.forward(changed, changed, changed, {.causal = true});
  EXPECT_TRUE(near(narrow(after, 0, 0, 4), narrow(before, 0, 0, 4), 0, 0));
  EXPECT_FALSE(near(after[4], before[4], 1e-3, 0));
}

TEST(Attention, WeightsPerHead) {
  Attention layer(4, 2, {.batch_first = true});
  const Tensor x = randn({3, 5, 4});
  const Tensor heads = layer.forward_with_weights(x, x, x, {}, false).weights;
  EXPECT_EQ(heads.shape(), (Dims{3, 2, 5, 5}));
  EXPECT_TRUE(near(layer.forward_with_weights(x, x, x).weights, mean(heads, 1), 1e-6, 1e-7));
  const Tensor alone = randn({5, 4});
  EXPECT_EQ(layer.forward_with_weights(alone, alone, alone).weights.shape(), (Dims{5, 5}));
}

TEST(Attention, DropoutInTrainingOnly) {
  Generator generator(2);
  Attention layer(4, 2, {.dropout = 0.5, .generator = &generator});
  const Tensor x = randn({6, 2, 4});
  EXPECT_FALSE(near(layer(x), layer(x), 1e-4, 1e-4));
  layer.eval();
  EXPECT_TRUE(near(layer(x), layer(x), 0, 0));
}

TEST(Attention, FirstWeights) {
  const Attention layer(32, 4);
  EXPECT_NEAR(amax(abs(layer.in_proj_weight.detach())).item<double>(), std::sqrt(6.0 / 128), 0.01);
  EXPECT_EQ(amax(abs(layer.in_proj_bias.detach())).item<double>(), 0.0);
  EXPECT_EQ(amax(abs(layer.out_proj->bias.detach())).item<double>(), 0.0);
}

TEST(Attention, Errors) {
  EXPECT_CONTAINS(message_of<ValueError>([] { Attention(5, 2); }),
                  "MultiheadAttention: embed_dim 5 cannot be divided into 2 heads");
  Attention layer(4, 2);
  const Tensor x = ones({3, 2, 4});
  EXPECT_CONTAINS(message_of<ShapeError>([&] { layer(ones({3, 2, 5})); }), "float32[3,2,5]");
  message_of<ShapeError>([&] { layer(ones({4})); });
  message_of<ShapeError>([&] { layer.forward(x, x, ones({2, 2, 4})); });
  message_of<ShapeError>([&] { layer.forward(x, ones({3, 1, 4}), ones({3, 1, 4})); });
  message_of<ValueError>([&] { layer.forward(x, Tensor(), x); });
  EXPECT_CONTAINS(message_of<ShapeError>([&] {
                    layer.forward(x, x, x, {.key_padding = ones({3, 3})});
                  }),
                  "the key padding mask is float32[3,3], needed is [2,3]");
  EXPECT_CONTAINS(message_of<ShapeError>([&] {
                    layer.forward(x, x, x, {.attention = ones({2, 3})});
                  }),
                  "needed is [3,3] or [4,3,3]");
  EXPECT_CONTAINS(message_of<DTypeError>([&] {
                    layer.forward(x, x, x, {.attention = ones({3, 3}, int64)});
                  }),
                  "must be bool (true: do not look)");
}

TEST(EncoderLayer, LabelsItsParts) {
  auto net = nn::sequential(
      {nn::make<nn::TransformerEncoderLayer>(4, 2, nn::TransformerEncoderLayerOptions{})});
  net->eval();
  const std::string table = graph::summary((*net)(randn({3, 2, 4})));
  for (const char* part : {"0/self_attn/out_proj", "0/linear1", "0/linear2", "0/norm2"}) {
    EXPECT_CONTAINS(table, part);
  }
}

TEST(EncoderLayer, DropoutInTrainingOnly) {
  nn::TransformerEncoderLayer layer(4, 2, {.dim_feedforward = 8, .dropout = 0.3});
  const Tensor x = randn({3, 2, 4});
  EXPECT_FALSE(near(layer(x), layer(x), 1e-4, 1e-4));
  layer.eval();
  EXPECT_TRUE(near(layer(x), layer(x), 0, 0));
}

}  // namespace
}  // namespace baregrad

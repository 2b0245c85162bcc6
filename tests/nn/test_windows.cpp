// Convolution, pooling and normalisation layers: defaults, errors, running statistics.
#include <cmath>

#include "tests/nn/support.h"

namespace baregrad {
namespace {

using nn::Size;

TEST(ConvLayers, FirstWeights) {
  const nn::Conv2d conv(16, 64, 3, {.groups = 2});
  EXPECT_EQ(conv.weight.shape(), (Dims{64, 8, 3, 3}));
  const double bound = 1 / std::sqrt(72.0);
  for (const Tensor& t : {conv.weight.detach(), conv.bias.detach()}) {
    EXPECT_LE(amax(abs(t)).item<double>(), bound);
    EXPECT_GE(amax(abs(t)).item<double>(), bound * 0.9);
  }
  // The transposed one computes its fan-in from axis 1 too.
  const nn::ConvTranspose2d transposed(32, 4, {3, 1});
  EXPECT_EQ(transposed.weight.shape(), (Dims{32, 4, 3, 1}));
  EXPECT_NEAR(amax(abs(transposed.weight.detach())).item<double>(), 1 / std::sqrt(12.0), 0.01);
}

TEST(ConvLayers, Errors) {
  EXPECT_CONTAINS(message_of<ValueError>([] { nn::Conv2d(3, 4, 3, {.groups = 2}); }),
                  "Conv2d: 3 channels in and 4 out cannot be divided into 2 groups");
  EXPECT_CONTAINS(message_of<ValueError>([] { nn::Conv1d(3, 4, 0); }), "Conv1d: kernel_size [0]");
  EXPECT_CONTAINS(message_of<ValueError>([] { nn::Conv2d(1, 1, 3, {.stride = 0}); }), "stride");
  message_of<ValueError>([] { nn::Conv2d(1, 1, 3, {.padding = -1}); });
  message_of<ValueError>([] { nn::Conv2d(0, 1, 3); });
  EXPECT_CONTAINS(message_of<ShapeError>([] { nn::Conv2d(1, 1, {3, 3, 3}); }), "Size: [3,3,3]");
  EXPECT_CONTAINS(message_of<ValueError>([] { nn::MaxPool2d(2, {.padding = 2}); }),
                  "MaxPool2d: padding [2,2]");
  message_of<ValueError>([] { nn::AvgPool1d(0); });
  message_of<ValueError>([] { nn::AdaptiveAvgPool2d(0); });
  nn::Conv2d conv(3, 4, 3);
  EXPECT_CONTAINS(message_of<ShapeError>([&] { conv(ones({1, 2, 5, 5})); }), "conv2d");
}

TEST(ConvLayers, WithoutABatch) {
  nn::Conv2d conv(2, 3, 3);
  nn::MaxPool2d pool(2);
  const Tensor x = randn({2, 6, 6});
  EXPECT_TRUE(near(conv(x), conv(expand_dims(x, {0}))[0], 1e-6, 1e-6));
  EXPECT_EQ(pool(conv(x)).shape(), (Dims{3, 2, 2}));
}

TEST(BatchNorm, RunningStatisticsMoveByMomentumOrAverage) {
  const Tensor first = randn({8, 2}, float64) * 2.0 + 1.0;
  const Tensor second = randn({8, 2}, float64);
  const auto mean_of = [](const Tensor& x) { return mean(x, 0); };
  const auto var_of = [](const Tensor& x) { return var(x, 0, 1.0); };
  nn::BatchNorm1d moving(2, {.momentum = 0.25});
  nn::BatchNorm1d plain(2, {.momentum = {}});
  for (nn::BatchNorm1d* layer : {&moving, &plain}) {
    layer->to(float64);
    (*layer)(first);
    (*layer)(second);
    EXPECT_EQ(layer->num_batches_tracked.item<std::int64_t>(), 2);
  }
  const Tensor once = mean_of(first) * 0.25;
  EXPECT_TRUE(near(moving.running_mean, once * 0.75 + mean_of(second) * 0.25, 1e-12, 1e-12));
  const Tensor var_once = var_of(first) * 0.25 + 0.75;
  EXPECT_TRUE(near(moving.running_var, var_once * 0.75 + var_of(second) * 0.25, 1e-12, 1e-12));
  EXPECT_TRUE(near(plain.running_mean, (mean_of(first) + mean_of(second)) * 0.5, 1e-12, 1e-12));
  EXPECT_TRUE(near(plain.running_var, (var_of(first) + var_of(second)) * 0.5, 1e-12, 1e-12));
  // Evaluation does not change them.
  const Tensor before = moving.running_mean.clone();
  moving.eval();
  moving(first);
  EXPECT_TRUE(near(moving.running_mean, before, 0, 0));
  EXPECT_EQ(moving.num_batches_tracked.item<std::int64_t>(), 2);
}

TEST(BatchNorm, WithoutBias) {
  const nn::BatchNorm2d layer(3, {.bias = false});
  EXPECT_EQ(layer.parameters().size(), 1U);
  EXPECT_CONTAINS(layer.to_string(), "affine=True, bias=False");
}

TEST(Norms, Errors) {
  EXPECT_CONTAINS(message_of<ShapeError>([] {
                    nn::BatchNorm2d(3)(ones({2, 3}));
                  }),
                  "BatchNorm2d: needs [N, 3, H, W], not float32[2,3]");
  EXPECT_CONTAINS(message_of<ShapeError>([] {
                    nn::BatchNorm1d(3)(ones({2, 4}));
                  }),
                  "BatchNorm1d: needs [N, 3] or [N, 3, L], not float32[2,4]");
  EXPECT_CONTAINS(message_of<ValueError>([] { nn::GroupNorm(2, 3); }), "GroupNorm: 3 channels");
  message_of<ShapeError>([] { nn::GroupNorm(2, 4)(ones({2, 6, 2})); });
  message_of<ValueError>([] { nn::GroupNorm(0, 4); });
  EXPECT_CONTAINS(message_of<ShapeError>([] { nn::LayerNorm(4)(ones({2, 5})); }), "layer_norm");
  message_of<ValueError>([] { nn::BatchNorm1d(3)(Tensor()); });
  EXPECT_THROW(nn::LayerNorm(Dims{-1}), Error);
}

TEST(Norms, ToBFloat16AndBack) {
  nn::BatchNorm1d layer(3);
  layer.to(bfloat16).to(float32);
  EXPECT_EQ(layer.running_var.dtype(), float32);
  EXPECT_EQ(layer.num_batches_tracked.dtype(), int64);
}

}  // namespace
}  // namespace baregrad

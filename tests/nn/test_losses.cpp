// Losses in special cases: large logits, ties, empty averages, mismatched arguments.
#include <cmath>

#include "tests/nn/support.h"

namespace baregrad {
namespace {

TEST(Losses, LogitsOfAnySizeInFloat32) {
  const Tensor x = Tensor::of<float>({-1e4F, -90.F, -20.F, 0.F, 20.F, 90.F, 1e4F}).requires_grad_();
  for (const double t : {0.0, 1.0}) {
    const Tensor each =
        nn::binary_cross_entropy_with_logits(x, full_like(x, t), {}, {}, Reduction::None);
    const Tensor weighted = nn::binary_cross_entropy_with_logits(
        x, full_like(x, t), {}, Tensor::scalar(1.0F), Reduction::None);
    x.zero_grad();
    sum(each).backward();
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const auto v = x.detach()[i].item<double>();
      const double truth = std::max(v, 0.0) - v * t + std::log1p(std::exp(-std::fabs(v)));
      EXPECT_NEAR(each[i].item<double>(), truth, 1e-6 * truth) << v;
      EXPECT_NEAR(weighted[i].item<double>(), truth, 1e-6 * truth) << v;
      const double slope = 1 / (1 + std::exp(-v)) - t;
      EXPECT_NEAR(x.grad()[i].item<double>(), slope, 1e-6 * std::fabs(slope) + 1e-7) << v;
    }
  }
}

TEST(Losses, LogitsHaveSecondDerivatives) {
  const auto fn = [](const Tensors& in) {
    return Tensors{nn::binary_cross_entropy_with_logits(in[0], sigmoid(in[1]), {}, exp(in[2]))};
  };
  const Tensors at = {Tensor::of<double>({-1.2, 0.0, 2.3}).requires_grad_(),
                      Tensor::of<double>({0.4, -0.3, 1.0}).requires_grad_(),
                      Tensor::of<double>({0.2, 0.5, -0.7}).requires_grad_()};
  EXPECT_EQ(autograd::gradcheck(fn, at), "");
  EXPECT_EQ(autograd::gradgradcheck(fn, at), "");
  const auto plain = [](const Tensors& in) {
    return Tensors{nn::binary_cross_entropy(sigmoid(in[0]), sigmoid(in[1]))};
  };
  EXPECT_EQ(autograd::gradgradcheck(plain, {at[0], at[1]}), "");
}

TEST(Losses, ShapesAreNotGuessed) {
  const std::string text = message_of<ShapeError>([] { nn::mse_loss(ones({4, 1}), ones({4})); });
  EXPECT_CONTAINS(text, "mse_loss: the input is float32[4,1] and the target float32[4]");
  message_of<ShapeError>([] { nn::l1_loss(ones({4}), ones({3})); });
  message_of<ValueError>([] { nn::huber_loss(ones({4}), Tensor()); });
  message_of<ValueError>([] { nn::huber_loss(ones({4}), ones({4}), Reduction::Mean, -1.0); });
  message_of<ValueError>([] { nn::smooth_l1_loss(ones({4}), ones({4}), Reduction::Mean, -1.0); });
  message_of<DTypeError>([] { nn::mse_loss(ones({4}, int64), ones({4}, int64)); });
  EXPECT_CONTAINS(message_of<ShapeError>([] {
                    nn::cosine_embedding_loss(ones({4, 3}), ones({4, 3}), ones({3}));
                  }),
                  "cosine_embedding_loss: ");
}

TEST(Losses, ProbabilitiesAreChecked) {
  EXPECT_CONTAINS(message_of<ValueError>([] {
                    nn::binary_cross_entropy(Tensor::of<double>({0.5, 1.5}), zeros({2}, float64));
                  }),
                  "holds 1.5");
  const Tensor nan = Tensor::of<double>({std::nan("")});
  EXPECT_TRUE(std::isnan(nn::binary_cross_entropy(nan, ones({1}, float64)).item<double>()));
}

TEST(Losses, ClassesAreChecked) {
  const Tensor x = ones({2, 3});
  EXPECT_CONTAINS(message_of<IndexError>([&] {
                    nn::nll_loss(x, Tensor::of<std::int64_t>({0, 3}));
                  }),
                  "nll_loss: the target int64[2] holds class 3 of 3");
  message_of<IndexError>([&] { nn::nll_loss(x, Tensor::of<std::int64_t>({0, -1})); });
  message_of<IndexError>([&] { nn::multi_margin_loss(x, Tensor::of<std::int64_t>({0, 7})); });
  message_of<DTypeError>([&] { nn::nll_loss(x, ones({2})); });
  message_of<ShapeError>([&] { nn::nll_loss(x, zeros({3}, int64)); });
  message_of<ShapeError>([&] { nn::nll_loss(x, zeros({2}, int64), {.weight = ones({2})}); });
  message_of<ShapeError>([&] { nn::multi_margin_loss(x, zeros({3}, int64)); });
  message_of<ValueError>([&] { nn::multi_margin_loss(x, zeros({2}, int64), {.p = 3}); });
}

TEST(Losses, IgnoredTargetsCountForNothing) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor x = Tensor::of<double>(std::vector<double>{-inf, -1.0, -0.5, -2.0}, {2, 2});
  x.requires_grad_();
  const Tensor loss = nn::nll_loss(x, Tensor::of<std::int64_t>({-100, 0}));
  EXPECT_EQ(loss.item<double>(), 0.5);
  loss.backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{0, 0, -1, 0}));
  // All ignored: 0 / 0, as in PyTorch.
  EXPECT_TRUE(std::isnan(nn::nll_loss(x, full({2}, -100, int64)).item<double>()));
}

TEST(Losses, OfNothing) {
  const Tensor none = zeros({0});
  EXPECT_EQ(nn::mse_loss(none, none, Reduction::Sum).item<double>(), 0.0);
  EXPECT_TRUE(std::isnan(nn::mse_loss(none, none).item<double>()));
  EXPECT_EQ(nn::binary_cross_entropy(none, none, {}, Reduction::None).numel(), 0);
  EXPECT_EQ(
      nn::nll_loss(zeros({0, 3}), zeros({0}, int64), {.reduction = Reduction::Sum}).item<double>(),
      0.0);
  const Tensor one = Tensor::scalar(2.0);
  EXPECT_EQ(nn::mse_loss(one, Tensor::scalar(5.0)).item<double>(), 9.0);
}

TEST(Losses, WeightsAreBuffers) {
  nn::BCEWithLogitsLoss loss(ones({3}), ones({3}));
  EXPECT_EQ(loss.state_dict().size(), 2U);
  EXPECT_EQ(loss.parameters().size(), 0U);
  loss.to(float64);
  EXPECT_EQ(loss.pos_weight.dtype(), float64);
}

}  // namespace
}  // namespace baregrad

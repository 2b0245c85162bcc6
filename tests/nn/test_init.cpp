// Initial values of weights, compared with closed forms.
#include <cmath>
#include <numbers>

#include "tests/nn/support.h"

namespace baregrad {
namespace {

using nn::make;
namespace init = nn::init;

double most(const Tensor& t) { return amax(abs(t.detach())).item<double>(); }
double deviation(const Tensor& t) { return std(t.detach().to(float64)).item<double>(); }
double average(const Tensor& t) { return mean(t.detach().to(float64)).item<double>(); }

/// Mean 0 and this deviation, each within five standard errors.
void expect_moments(const Tensor& t, double sigma) {
  const double share = 5 * sigma / std::sqrt(static_cast<double>(t.numel()));
  EXPECT_NEAR(average(t), 0, share);
  EXPECT_NEAR(deviation(t), sigma, share / std::sqrt(2.0));
}
/// Uniform within +-bound: no values outside, some close to it.
void expect_uniform(const Tensor& t, double bound) {
  EXPECT_LE(most(t), bound * (1 + 1e-6));
  EXPECT_GE(most(t), bound * 0.97);
  expect_moments(t, bound / std::sqrt(3.0));
}
void expect_normal(const Tensor& t, double sigma) {
  expect_moments(t, sigma);
  EXPECT_GT(most(t), 3 * sigma);
}

TEST(Init, Gains) {
  using init::Nonlinearity;
  EXPECT_DOUBLE_EQ(init::calculate_gain(Nonlinearity::Linear), 1.0);
  EXPECT_DOUBLE_EQ(init::calculate_gain(Nonlinearity::Sigmoid), 1.0);
  EXPECT_DOUBLE_EQ(init::calculate_gain(Nonlinearity::Tanh), 5.0 / 3.0);
  EXPECT_DOUBLE_EQ(init::calculate_gain(Nonlinearity::Relu), std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(init::calculate_gain(Nonlinearity::LeakyRelu, 2.0), std::sqrt(0.4));
  EXPECT_DOUBLE_EQ(init::calculate_gain(Nonlinearity::Selu), 0.75);
}

TEST(Init, Fans) {
  const init::Fans linear = init::fans(empty({3, 5}));
  EXPECT_EQ(linear.in, 5);
  EXPECT_EQ(linear.out, 3);
  const init::Fans conv = init::fans(empty({8, 4, 3, 2}));
  EXPECT_EQ(conv.in, 24);
  EXPECT_EQ(conv.out, 48);
  EXPECT_CONTAINS(message_of<ShapeError>([] { init::fans(empty({3})); }), "fans: float32[3]");
  EXPECT_CONTAINS(message_of<ShapeError>([] { init::xavier_normal_(empty({3})); }),
                  "xavier_normal_: ");
}

TEST(Init, XavierAndKaiming) {
  const Tensor t = empty({60, 20, 3, 3});  // fan in 180, fan out 540
  expect_uniform(init::xavier_uniform_(t, 2.0), 2.0 * std::sqrt(6.0 / 720));
  expect_normal(init::xavier_normal_(t, 2.0), 2.0 * std::sqrt(2.0 / 720));
  expect_uniform(init::kaiming_uniform_(t), std::sqrt(6.0 / 180));
  expect_uniform(init::kaiming_uniform_(t, {.slope = std::sqrt(5.0)}), std::sqrt(1.0 / 180));
  expect_normal(init::kaiming_normal_(t, {.fan = init::Fan::Out}), std::sqrt(2.0 / 540));
  expect_normal(init::kaiming_normal_(t, {.nonlinearity = init::Nonlinearity::Tanh}),
                5.0 / 3.0 / std::sqrt(180.0));
}

TEST(Init, PlainOnes) {
  const Tensor t = empty({100, 100});
  init::uniform_(t, 1.0, 3.0);
  EXPECT_NEAR(average(t), 2.0, 0.02);
  init::normal_(t, -1.0, 0.5);
  EXPECT_NEAR(average(t), -1.0, 0.02);
  EXPECT_NEAR(deviation(t), 0.5, 0.02);
  EXPECT_EQ(most(init::zeros_(t)), 0.0);
  EXPECT_EQ(average(init::ones_(t)), 1.0);
  EXPECT_EQ(average(init::constant_(t, 0.25)), 0.25);
}

TEST(Init, TruncatedNormal) {
  const Tensor t = empty({200, 200}, float64);
  init::trunc_normal_(t, 1.0, 2.0, 0.0, 4.0);
  const auto low = amin(t).item<double>();
  const auto high = amax(t).item<double>();
  EXPECT_GE(low, 0.0);
  EXPECT_LE(high, 4.0);
  EXPECT_LT(low, 0.01);
  EXPECT_GT(high, 3.99);
  // Mean and variance of a normal distribution cut at a and b (in deviations).
  const double a = -0.5;
  const double b = 1.5;
  const auto density = [](double x) {
    return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
  };
  const double mass = 0.5 * (std::erf(b / std::sqrt(2.0)) - std::erf(a / std::sqrt(2.0)));
  const double shift = (density(a) - density(b)) / mass;
  const double spread = 1 + (a * density(a) - b * density(b)) / mass - shift * shift;
  EXPECT_NEAR(average(t), 1.0 + 2.0 * shift, 0.02);
  EXPECT_NEAR(deviation(t), 2.0 * std::sqrt(spread), 0.02);
  // The quantiles too: half of all values are below the median of the truncated distribution.
  const double middle = 0.5 * (std::erf(b / std::sqrt(2.0)) + std::erf(a / std::sqrt(2.0)));
  double x = 0;  // erf(x / sqrt 2) = middle, by bisection
  for (double step = 2; step > 1e-12; step /= 2) {
    x += std::erf(x / std::sqrt(2.0)) < middle ? step : -step;
  }
  const auto below = count_nonzero(t < 1.0 + 2.0 * x).item<double>();
  EXPECT_NEAR(below / 40000, 0.5, 0.01);
}

TEST(Init, TruncatedNormalInTheTails) {
  const Tensor t = empty({2000}, float64);
  for (const double side : {1.0, -1.0}) {
    // Beyond 8 deviations the tail falls like exp(-8 x): the mean excess is about 1 / 8.
    init::trunc_normal_(t, 0.0, 1.0, side > 0 ? 8.0 : -9.0, side > 0 ? 9.0 : -8.0);
    EXPECT_GE(amin(t * side).item<double>(), 8.0);
    EXPECT_LE(amax(t * side).item<double>(), 9.0);
    EXPECT_NEAR(average(t) * side - 8.0, 0.121, 0.012);
  }
  EXPECT_CONTAINS(message_of<ValueError>([&] { init::trunc_normal_(t, 0, 1, 50, 60); }),
                  "trunc_normal_: nothing");
  message_of<ValueError>([&] { init::trunc_normal_(t, 0, 0); });
  message_of<ValueError>([&] { init::trunc_normal_(t, 0, 1, 2, -2); });
  message_of<ValueError>([&] { init::trunc_normal_(t, 0, std::nan("")); });
}

TEST(Init, OrthogonalRowsOrColumns) {
  for (const Dims& shape :
       {Dims{20, 50}, Dims{50, 20}, Dims{32, 32}, Dims{6, 4, 3, 3}, Dims{1, 1}}) {
    const Tensor t = init::orthogonal_(empty(shape, float64), 1.5);
    const Tensor m = reshape(t, {shape[0], -1});
    const bool wide = m.shape()[0] <= m.shape()[1];
    const Tensor product = wide ? matmul(m, m.mT()) : matmul(m.mT(), m);
    const Tensor wanted = eye(product.shape()[0], {}, 0, float64) * 2.25;
    EXPECT_TRUE(near(product, wanted, 0, 1e-12)) << to_string(shape);
  }
  EXPECT_EQ(init::orthogonal_(empty({0, 3})).numel(), 0);
  EXPECT_CONTAINS(message_of<ShapeError>([] { init::orthogonal_(empty({3})); }), "orthogonal_");
}

TEST(Init, DefaultsOfLayersArePyTorchs) {
  nn::Linear linear(100, 300);
  expect_uniform(linear.weight, 0.1);
  expect_uniform(linear.bias, 0.1);
  nn::Embedding embedding(200, 100, 7);
  expect_normal(embedding.weight, 1.0);
  EXPECT_EQ(most(embedding.weight[7]), 0.0);
  nn::LSTM lstm(30, 64);
  for (const Tensor& p : lstm.parameters()) expect_uniform(p, 0.125);
}

TEST(Init, AGeneratorOfItsOwnRepeats) {
  Generator a(5);
  Generator b(5);
  const nn::MLP first({4, 8, 3}, {.generator = &a});
  const nn::MLP second({4, 8, 3}, {.generator = &b});
  const std::vector<Tensor> x = first.parameters();
  const std::vector<Tensor> y = second.parameters();
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(near(x[i], y[i], 0, 0));
  EXPECT_NE(deviation(x[0] - x[0].detach() * 0.0), 0.0);
  const nn::MLP third({4, 8, 3}, {.generator = &a});
  EXPECT_FALSE(near(third.parameters()[0], x[0], 0, 0));
}

TEST(Init, LeavesNoHistoryAndWorksOnLeaves) {
  const Tensor t = zeros({4, 4}).requires_grad_();
  init::xavier_uniform_(t);
  EXPECT_TRUE(t.is_leaf());
  EXPECT_GT(most(t), 0.0);
  EXPECT_CONTAINS(message_of<DTypeError>([] { init::normal_(zeros({2}, int64)); }), "normal_: ");
  message_of<ValueError>([] { init::normal_(Tensor()); });
}

}  // namespace
}  // namespace baregrad

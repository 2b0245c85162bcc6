// GradientRecorder: norms compared with those computed by hand, and their colours in the picture.
#include <cmath>
#include <limits>
#include <thread>

#include "tests/graph/support.h"

namespace baregrad {
namespace {

using graph::GradientRecorder;
using graph::to_dot;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor leaf(std::initializer_list<double> values) {
  return Tensor::of<double>(values).requires_grad_();
}

/// The recorded norm of a gradient with these values.
double norm_of(std::initializer_list<double> values) {
  GradientRecorder gradients;
  const Tensor x = zeros({static_cast<std::int64_t>(values.size())}, DType::Float64);
  x.requires_grad_();
  positive(x).backward(Tensor::of<double>(values));
  return gradients.norm(x).value();
}

TEST(GradientRecorder, NormsOfEveryValue) {
  const Tensor x = leaf({1, 2});
  const Tensor h = x * 3.0;
  const Tensor loss = sum(h * h);
  GradientRecorder gradients;
  EXPECT_FALSE(gradients.norm(x).has_value());
  loss.backward();
  // d/dh = 2h = (6, 12), the sum over both factors of h * h; d/dx = 3 times that.
  EXPECT_DOUBLE_EQ(gradients.norm(loss).value(), 1.0);
  EXPECT_DOUBLE_EQ(gradients.norm(h).value(), std::sqrt(36.0 + 144.0));
  EXPECT_DOUBLE_EQ(gradients.norm(x).value(), 3 * std::sqrt(36.0 + 144.0));
  EXPECT_EQ(gradients.size(), 4U);  // loss, h * h, h, x
  EXPECT_FALSE(gradients.norm(ones({1})).has_value());
  EXPECT_THROW(gradients.norm(Tensor()), ValueError);
  gradients.clear();
  EXPECT_EQ(gradients.size(), 0U);
}

TEST(GradientRecorder, TheLastBackwardCounts) {
  const Tensor x = leaf({1});
  const Tensor y = x * 5.0;
  GradientRecorder gradients;
  y.backward(Tensor::of<double>({1}), true);
  y.backward(Tensor::of<double>({-10}));
  EXPECT_EQ(gradients.norm(x).value(), 50) << "not the sum in x.grad()";
}

TEST(GradientRecorder, OnlyWhileItLives) {
  const Tensor x = leaf({1});
  const Tensor y = x * 5.0;
  GradientRecorder outer;
  {
    const GradientRecorder inner;
    y.backward({}, true);
    EXPECT_EQ(inner.norm(x).value(), 5);
  }
  EXPECT_EQ(outer.norm(x).value(), 5);
  outer.clear();
  std::thread([&] { y.backward(); }).join();
  EXPECT_EQ(outer.norm(x).value(), 5) << "backward in another thread";
}

TEST(GradientRecorder, KeepsNoNodeAlive) {
  const std::int64_t before = autograd::live_nodes();
  GradientRecorder gradients;
  {
    const Tensor x = leaf({1});
    sum(x * x).backward();
  }
  EXPECT_EQ(autograd::live_nodes(), before);
  EXPECT_GT(gradients.size(), 0U);
}

TEST(GradientRecorder, SeesWhatHooksMade) {
  const Tensor x = leaf({1});
  const Tensor h = x * 2.0;
  h.register_hook([](const Tensor& g) { return g * 100.0; });
  const GradientRecorder gradients;
  sum(h).backward();
  EXPECT_EQ(gradients.norm(h).value(), 100);
  EXPECT_EQ(gradients.norm(x).value(), 200);
}

TEST(GradientRecorder, NormsNeitherOverflowNorVanish) {
  EXPECT_DOUBLE_EQ(norm_of({3e200, -4e200}), 5e200);
  EXPECT_DOUBLE_EQ(norm_of({3e-200, 4e-200}), 5e-200);
  EXPECT_EQ(norm_of({0, -0.0}), 0);
  EXPECT_EQ(norm_of({}), 0);
  EXPECT_EQ(norm_of({1, -kInf}), kInf);
  EXPECT_TRUE(std::isnan(norm_of({1, kInf, kNan})));
  // 200 * 200 overflows float16.
  GradientRecorder gradients;
  const Tensor x = zeros({2}, DType::Float16).requires_grad_();
  positive(x).backward(full({2}, 200, DType::Float16));
  EXPECT_DOUBLE_EQ(gradients.norm(x).value(), 200 * std::sqrt(2.0));
}

TEST(GradientRecorder, StaysQuietUnderAnomalyMode) {
  const autograd::AnomalyScope anomaly;
  EXPECT_DOUBLE_EQ(norm_of({3e200, -4e200}), 5e200);
}

TEST(ToDot, GradientsAreWrittenAndColoured) {
  const Tensor x = leaf({1});
  const Tensor fine = x * 2.0;
  const Tensor small = fine * 1e-9;
  const Tensor large = x * 1e5;
  const Tensor broken = x * kInf;
  const Tensor unused = fine * 3.0;
  GradientRecorder gradients;
  autograd::backward({small, large, broken});
  const std::string dot =
      to_dot({small, large, broken, unused}, {.names = {{"x", x}}, .gradients = &gradients});
  // x: 2e-9 + 1e5 + inf; fine: 1e-9
  EXPECT_TRUE(has(dot, "n0 -> n1 [label=\"inf\", color=\"#CC79A7\"")) << dot;
  EXPECT_TRUE(has(dot, "n1 -> n2 [label=\"1e-09\", color=\"#0072B2\"")) << dot;
  EXPECT_TRUE(has(dot, "n2 -> r0 [label=\"1\"];")) << dot;
  EXPECT_TRUE(has(dot, "n5 -> r3 [color=\"#999999\"")) << dot;
  for (const char* line : {"vanishing: below 1e-07", "exploding: above 1e+03", "NaN or infinite",
                           "dotted: no gradient came"}) {
    EXPECT_TRUE(has(dot, line)) << dot;
  }
  const Tensor y = x * 1e5;
  GradientRecorder others;
  y.backward();
  const std::string exploding = to_dot(y, {.gradients = &others});
  EXPECT_TRUE(has(exploding, "n0 -> n1 [label=\"1e+05\", color=\"#D55E00\"")) << exploding;
  const std::string bounds = to_dot(y, {.gradients = &others, .exploding = 1e6});
  EXPECT_TRUE(has(bounds, "n0 -> n1 [label=\"1e+05\"];")) << bounds;
}

}  // namespace
}  // namespace baregrad

// Gradients at ties, kinks and poles. The expected numbers are the output of PyTorch 2.13 for the
// same call, with the gradient 1, 2, 3, ... of the result.
#include <cmath>
#include <functional>
#include <limits>

#include "tests/autograd/support.h"

namespace baregrad {
namespace {

using Values = std::vector<double>;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

/// NaN equals NaN; the sign of zero does not count; the last bits may differ.
void expect_values(const Tensor& got, const Values& want, const std::string& what) {
  ASSERT_TRUE(got.defined()) << what;
  const Values have = values(got);
  ASSERT_EQ(have.size(), want.size()) << what;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(have[i])) << what << ", element " << i << ": " << have[i];
    } else {
      const double room = std::isinf(want[i]) ? 0 : 1e-14 * std::fabs(want[i]);
      EXPECT_TRUE(have[i] == want[i] || std::fabs(have[i] - want[i]) <= room)
          << what << ", element " << i << ": " << have[i] << ", not " << want[i];
    }
  }
}

void expect_gradients(const std::string& what, const Tensors& inputs,
                      const std::function<Tensor(const Tensors&)>& fn,
                      const std::vector<Values>& want) {
  const Tensor y = fn(inputs);
  const Tensor g = reshape(arange(1, y.numel() + 1, 1, DType::Float64), y.shape());
  const Tensors got = autograd::grad({y}, inputs, {g});
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    expect_values(got[k], want[k], what + ", input " + std::to_string(k));
  }
}
void expect_gradient(const std::string& what, const Tensor& x,
                     const std::function<Tensor(const Tensor&)>& fn, const Values& want) {
  expect_gradients(what, {x}, [&](const Tensors& in) { return fn(in[0]); }, {want});
}

TEST(Kinks, MaximumAndMinimumShareTies) {
  const Tensors in = {leaf({1, 2, 3, kNaN, 1}), leaf({1, 3, 2, 1, kNaN})};
  expect_gradients("maximum", in, [](const Tensors& t) { return maximum(t[0], t[1]); },
                   {{0.5, 0, 3, 4, 5}, {0.5, 2, 0, 4, 5}});
  expect_gradients("minimum", in, [](const Tensors& t) { return minimum(t[0], t[1]); },
                   {{0.5, 2, 0, 4, 5}, {0.5, 0, 3, 4, 5}});
}

TEST(Kinks, TheGreatestShareTheGradient) {
  expect_gradient("amax", leaf({3, 1, 3, 2}), [](const Tensor& x) { return amax(x); },
                  {0.5, 0, 0.5, 0});
  expect_gradient("max", leaf({3, 1, 3, 2}), [](const Tensor& x) { return max(x); },
                  {0.5, 0, 0.5, 0});
  expect_gradient("min", leaf({3, 1, 1, 2}), [](const Tensor& x) { return min(x); },
                  {0, 0.5, 0.5, 0});
  expect_gradient("amax of rows", leaf({3, 1, 3, 2, 2, 2}, {2, 3}),
                  [](const Tensor& x) { return amax(x, 1); },
                  {0.5, 0, 0.5, 2.0 / 3, 2.0 / 3, 2.0 / 3});
  expect_gradient("amin of rows", leaf({1, 1, 3, 2, 2, 2}, {2, 3}),
                  [](const Tensor& x) { return amin(x, 1); },
                  {0.5, 0.5, 0, 2.0 / 3, 2.0 / 3, 2.0 / 3});
  expect_gradient("amax over two axes", leaf({3, 1, 2, 3, 3, 0, 3, 3}, {2, 2, 2}),
                  [](const Tensor& x) {
                    return amax(x, {0, 2});
                  },
                  {0.5, 0, 0, 2.0 / 3, 0.5, 0, 2.0 / 3, 2.0 / 3});
}

TEST(Kinks, Activations) {
  expect_gradient("relu", leaf({-1, 0, -0.0, 1, kNaN}), [](const Tensor& x) { return relu(x); },
                  {0, 0, 0, 4, 5});
  expect_gradient("abs", leaf({-1, 0, -0.0, 1}), [](const Tensor& x) { return abs(x); },
                  {-1, 0, 0, 4});
  expect_gradient("leaky_relu", leaf({-1, 0, 1, kNaN}),
                  [](const Tensor& x) { return leaky_relu(x, 0.1); }, {0.1, 0.2, 3, 0.4});
  expect_gradient("elu 0.5", leaf({-1, 0, 1}), [](const Tensor& x) { return elu(x, 0.5); },
                  {0.18393972058572117, 1, 3});
  expect_gradient("elu 2", leaf({-1, 0, -0.0, 1}), [](const Tensor& x) { return elu(x, 2); },
                  {0.73575888234288467, 4, 6, 4});
  expect_gradient("hardswish", leaf({-4, -3, 0, 3, 4, kNaN}),
                  [](const Tensor& x) { return hardswish(x); }, {0, 0, 1.5, 4, 5, 6});
  expect_gradient("softplus", leaf({20, 21, 0, -800}), [](const Tensor& x) { return softplus(x); },
                  {0.99999999793884643, 2, 1.5, 0});
  expect_gradient("silu", leaf({0, -800, 800}), [](const Tensor& x) { return silu(x); },
                  {0.5, 0, 3});
  expect_gradient("gelu", leaf({0, -800, 800}), [](const Tensor& x) { return gelu(x); },
                  {0.5, 0, 3});
  expect_gradient("gelu_tanh", leaf({0, -800, 800}), [](const Tensor& x) { return gelu_tanh(x); },
                  {0.5, 0, 3});
  expect_gradient("mish", leaf({0, -800, 800}), [](const Tensor& x) { return mish(x); },
                  {0.6, 0, 3});
  expect_gradient("sigmoid", leaf({-800, 800}), [](const Tensor& x) { return sigmoid(x); }, {0, 0});
  expect_gradient("tanh", leaf({800}), [](const Tensor& x) { return tanh(x); }, {0});
}

TEST(Kinks, ClipWithNumbers) {
  expect_gradient("both", leaf({-2, -1, 0, 1, 2, kNaN}),
                  [](const Tensor& x) { return clip(x, -1, 1); }, {0, 2, 3, 4, 0, 0});
  expect_gradient("low", leaf({-2, -1, 0, kNaN}), [](const Tensor& x) { return clip(x, -1, {}); },
                  {0, 2, 3, 0});
  expect_gradient("high", leaf({0, 1, 2, kNaN}), [](const Tensor& x) { return clip(x, {}, 1); },
                  {1, 2, 0, 0});
  expect_gradient("low above high", leaf({-2, -1, 0, 1, 2}),
                  [](const Tensor& x) { return clip(x, 1, -1); }, {0, 0, 0, 0, 0});
}

TEST(Kinks, ClipWithTensors) {
  const auto both = [](const Tensors& t) { return clip(t[0], t[1], t[2]); };
  expect_gradients("both",
                   {leaf({-2, -1, 0, 1, 2, kNaN, 0, 0}), leaf({-1, -1, -1, -1, -1, -1, kNaN, -1}),
                    leaf({1, 1, 1, 1, 1, 1, 1, kNaN})},
                   both,
                   {{0, 2, 3, 4, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 5, 0, 0, 0}});
  expect_gradients("low above high",
                   {leaf({-2, -1, 0, 1, 2}), leaf({1, 1, 1, 1, 1}), leaf({-1, -1, -1, -1, -1})},
                   both, {{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, {1, 2, 3, 4, 5}});
  expect_gradients("low is high", {leaf({-2, 1, 2}), leaf({1, 1, 1}), leaf({1, 1, 1})}, both,
                   {{0, 2, 0}, {0, 0, 0}, {0, 0, 3}});
  expect_gradients("low", {leaf({-2, -1, 0, kNaN, 0}), leaf({-1, -1, -1, -1, kNaN})},
                   [](const Tensors& t) { return clip(t[0], t[1], {}); },
                   {{0, 2, 3, 0, 0}, {1, 0, 0, 0, 0}});
  expect_gradients("high", {leaf({0, 1, 2, kNaN, 0}), leaf({1, 1, 1, 1, kNaN})},
                   [](const Tensors& t) { return clip(t[0], {}, t[1]); },
                   {{1, 2, 0, 0, 0}, {0, 0, 3, 0, 0}});
}

TEST(Kinks, PowAtZero) {
  const std::pair<double, Values> by_number[] = {
      {0, {0, 0, 0}},
      {1, {1, 2, 3}},
      {2, {0, 8, -12}},
      {3, {0, 24, 36}},
      {0.5, {kInf, 0.70710678118654746, kNaN}},
      {-1, {-kInf, -0.5, -0.75}},
  };
  for (const auto& [exponent, want] : by_number) {
    expect_gradient(
        "x^" + std::to_string(exponent), leaf({0, 2, -2}),
        [e = exponent](const Tensor& x) { return pow(x, e); }, want);
  }
  expect_gradients("x^y",
                   {leaf({0, 0, 0, 0, 0, 0, -2, -2, 2}), leaf({0, 1, 2, 3, 0.5, -1, 2, 0, 0})},
                   [](const Tensors& t) { return pow(t[0], t[1]); },
                   {{0, 2, 0, 0, kInf, -kInf, -28, 0, 0},
                    {0, 0, 0, 0, 0, -kInf, kNaN, kNaN, 6.2383246250395077}});
  expect_gradient("0^y", leaf({0, 1, -1}), [](const Tensor& y) { return pow(0.0, y); },
                  {0, 0, -kInf});
  expect_gradient("2^y", leaf({0, 1, -1}), [](const Tensor& y) { return pow(2.0, y); },
                  {0.69314718055994529, 2.7725887222397811, 1.0397207708399179});
}

TEST(Kinks, Poles) {
  expect_gradient("sqrt", leaf({0, 4}), [](const Tensor& x) { return sqrt(x); }, {kInf, 0.5});
  expect_gradient("rsqrt", leaf({0, 4}), [](const Tensor& x) { return rsqrt(x); }, {-kInf, -0.125});
  expect_gradient("log", leaf({0, 2}), [](const Tensor& x) { return log(x); }, {kInf, 1});
  expect_gradient("reciprocal", leaf({0, 2}), [](const Tensor& x) { return reciprocal(x); },
                  {-kInf, -0.5});
  expect_gradient("asin", leaf({1, -1}), [](const Tensor& x) { return asin(x); }, {kInf, kInf});
  expect_gradient("acos", leaf({1}), [](const Tensor& x) { return acos(x); }, {-kInf});
  expect_gradient("acosh", leaf({1}), [](const Tensor& x) { return acosh(x); }, {kInf});
  expect_gradients("divide", {leaf({1, 0}), leaf({0, 0})},
                   [](const Tensors& t) { return t[0] / t[1]; }, {{kInf, kInf}, {-kInf, kNaN}});
}

TEST(Kinks, Norms) {
  const double orders[] = {-3, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, kInf, -kInf};
  for (const double order : orders) {
    expect_gradient("norm of zeros " + std::to_string(order), leaf({0, 0, 0}),
                    [order](const Tensor& x) { return norm(x, order); }, {0, 0, 0});
  }
  const std::pair<double, Values> one_zero[] = {{0.5, {0, 2.1547005383792519, -1.8660254037844386}},
                                                {1, {0, 1, -1}},
                                                {1.5, {0, 0.7329564758289748, -0.8463452372482761}},
                                                {2, {0, 0.6, -0.8}},
                                                {3, {0, 0.44485135173053563, -0.79084684752095214}},
                                                {kInf, {0, 0, -1}},
                                                {-kInf, {0, 0, 0}},
                                                {0, {0, 0, 0}},
                                                {-0.5, {0, 0, 0}},
                                                {-1, {0, 0, 0}},
                                                {-2, {0, 0, 0}}};
  for (const auto& [order, want] : one_zero) {
    expect_gradient(
        "norm " + std::to_string(order), leaf({0, 3, -4}),
        [p = order](const Tensor& x) { return norm(x, p); }, want);
  }
  expect_gradient("order -1", leaf({1, -2, 2}), [](const Tensor& x) { return norm(x, -1); },
                  {0.25, -0.0625, 0.0625});
  expect_gradient("ties of the greatest", leaf({3, -3, 1}),
                  [](const Tensor& x) { return norm(x, kInf); }, {0.5, -0.5, 0});
  expect_gradient("ties of the least", leaf({3, -1, 1}),
                  [](const Tensor& x) { return norm(x, -kInf); }, {0, -0.5, 0.5});
  expect_gradient("rows", leaf({0, 0, 3, 4}, {2, 2}), [](const Tensor& x) { return norm(x, 2, 1); },
                  {0, 0, 1.2, 1.6});
  expect_gradient("rows of order 3", leaf({0, 0, 1, 2}, {2, 2}),
                  [](const Tensor& x) { return norm(x, 3, 1); },
                  {0, 0, 0.46224084956708979, 1.848963398268359});
}

TEST(Kinks, SpreadOfConstants) {
  for (const double correction : {0.0, 1.0}) {
    expect_gradient("std", leaf({2, 2, 2}),
                    [=](const Tensor& x) { return baregrad::std(x, {}, correction); }, {0, 0, 0});
    expect_gradient("var", leaf({2, 2, 2}), [=](const Tensor& x) { return var(x, {}, correction); },
                    {0, 0, 0});
  }
  expect_gradient("std of rows", leaf({2, 2, 1, 3}, {2, 2}),
                  [](const Tensor& x) { return baregrad::std(x, 1); }, {0, 0, -1, 1});
  expect_gradient("std of one", leaf({2}), [](const Tensor& x) { return baregrad::std(x); }, {0});
  expect_gradient("std of one, corrected", leaf({2}),
                  [](const Tensor& x) { return baregrad::std(x, {}, 1); }, {kNaN});
  expect_gradient("var of one, corrected", leaf({2}), [](const Tensor& x) { return var(x, {}, 1); },
                  {kNaN});
}

/// With the second derivative, which PyTorch computes for the sum of the first.
void expect_both(const std::string& what, const Tensor& x,
                 const std::function<Tensor(const Tensor&)>& fn, const Values& first,
                 const Values& second) {
  const Tensor y = fn(x);
  const Tensor g = reshape(arange(1, y.numel() + 1, 1, DType::Float64), y.shape());
  const Tensor slope = autograd::grad({y}, {x}, {g}, {.create_graph = true})[0];
  expect_values(slope, first, what);
  expect_values(autograd::grad({sum(slope)}, {x})[0], second, what + ", second");
}

TEST(Kinks, ProductsWithZeros) {
  const auto product = [](const Tensor& x) { return prod(x); };
  expect_both("no zero", leaf({2, 3, 4}), product, {12, 8, 6}, {7, 6, 5});
  expect_both("one zero", leaf({2, 0, 4}), product, {0, 8, 0}, {4, 6, 2});
  expect_both("two zeros", leaf({0, 3, 0}), product, {0, 0, 0}, {3, 0, 3});
  expect_both("three zeros", leaf({0, 0, 0}), product, {0, 0, 0}, {0, 0, 0});
  expect_both("rows", leaf({0, 0, 2, 1, 0, 3, 2, 3, 4}, {3, 3}),
              [](const Tensor& x) { return prod(x, 1); }, {0, 0, 0, 0, 6, 0, 36, 24, 18},
              {2, 2, 0, 6, 8, 2, 21, 18, 15});
  const auto running = [](const Tensor& x) { return cumulative_prod(x, 0); };
  expect_both("running", leaf({2, 0, 3, 0, 5}), running, {1, 22, 0, 0, 0}, {11, 191, 6, 174, 0});
  expect_both("running from zero", leaf({0, 0, 3}), running, {1, 0, 0}, {11, 11, 0});
}

TEST(Kinks, RunningGreatest) {
  const auto running = [](const Tensor& x) { return cumulative_max(x, 0); };
  expect_gradient("ties", leaf({1, 3, 3, 2, 3, 4, 4}), running, {1, 2, 7, 0, 5, 6, 7});
  expect_gradient("NaN", leaf({1, kNaN, 3, kNaN, 2}), running, {1, 5, 0, 9, 0});
}

TEST(Kinks, Signs) {
  expect_gradients("copysign", {leaf({0, -0.0, 1, -1, 2}), leaf({1, 1, -1, -1, 0})},
                   [](const Tensors& t) { return copysign(t[0], t[1]); },
                   {{0, 0, -3, 4, 5}, {0, 0, 0, 0, 0}});
  expect_gradient("sign", leaf({0, 1}), [](const Tensor& x) { return sign(x); }, {0, 0});
  expect_gradient("floor", leaf({1, 1.5}), [](const Tensor& x) { return floor(x); }, {0, 0});
  expect_gradients("remainder", {leaf({4, -5, 5}), leaf({2, 3, -3})},
                   [](const Tensors& t) { return remainder(t[0], t[1]); }, {{1, 2, 3}, {-2, 4, 6}});
}

TEST(Kinks, TheBranchNotTaken) {
  expect_gradient("where over log", leaf({-1, 1}),
                  [](const Tensor& x) { return where(x > 0, log(x), x); }, {1, 2});
  // Zero times the infinite slope of the root: a known case, the same in PyTorch.
  expect_gradient("where over sqrt", leaf({0, 4}),
                  [](const Tensor& x) { return where(x > 0, sqrt(x), 0.0); }, {kNaN, 0.5});
  expect_gradients("NaN not taken", {leaf({kNaN, 1}), leaf({1, kNaN})},
                   [](const Tensors& t) {
                     return where(Tensor::of<double>({1, 0}) > 0, t[0], t[1]);
                   },
                   {{1, 0}, {0, 2}});
  expect_gradient("masked_fill", leaf({kNaN, 1}),
                  [](const Tensor& x) { return masked_fill(x, isnan(x), 0); }, {0, 2});
}

TEST(Kinks, Angles) {
  expect_gradients("atan2", {leaf({0, 0, 1}), leaf({0, 1, 0})},
                   [](const Tensors& t) { return atan2(t[0], t[1]); }, {{0, 2, 0}, {0, 0, -3}});
  expect_gradients("hypot", {leaf({0, 0, 3}), leaf({0, 1, 4})},
                   [](const Tensors& t) { return hypot(t[0], t[1]); },
                   {{kNaN, 0, 1.8}, {kNaN, 2, 2.4}});
}

TEST(Kinks, InfinitiesInExponents) {
  const auto lse = [](const Tensor& x) { return logsumexp(x); };
  expect_gradient("all -inf", leaf({-kInf, -kInf}), lse, {kNaN, kNaN});
  expect_gradient("one -inf", leaf({-kInf, 1}), lse, {0, 1});
  expect_gradient("one inf", leaf({kInf, 1}), lse, {kNaN, 0});
  expect_gradients("logaddexp", {leaf({-kInf, -kInf, 1, kInf, kInf}), leaf({-kInf, 1, 1, 1, kInf})},
                   [](const Tensors& t) { return logaddexp(t[0], t[1]); },
                   {{kNaN, 0, 1.5, 4, kNaN}, {kNaN, 2, 1.5, 0, kNaN}});
  const double quarter = 0.19661193324148185;  // s (1 - s) at 1
  const Tensor x = leaf({-kInf, 1, 2});
  const Tensor g = autograd::grad({softmax(x)}, {x}, {Tensor::of<double>({1, 2, 3})})[0];
  EXPECT_EQ(values(g)[0], 0);
  EXPECT_NEAR(values(g)[1], -quarter, 1e-15);
  EXPECT_NEAR(values(g)[2], quarter, 1e-15);
  expect_gradient("log_softmax", leaf({-kInf, 1, 2}),
                  [](const Tensor& t) { return log_softmax(t); },
                  {1, 0.38635147178002941, -1.3863514717800294});
}

/// The sort is stable, so gradients of equal values keep their order too.
TEST(Kinks, SortedTies) {
  expect_gradient("up", leaf({2, 1, 2, 1}), [](const Tensor& x) { return sort(x); }, {3, 1, 4, 2});
  expect_gradient("down", leaf({2, 1, 2, 1}), [](const Tensor& x) { return sort(x, -1, true); },
                  {1, 3, 2, 4});
}

}  // namespace
}  // namespace baregrad

// gradcheck itself: it must detect wrong gradients and say where they are.
#include "baregrad/error.h"
#include "tests/autograd/support.h"

namespace baregrad {
namespace {

using autograd::Context;
using autograd::gradcheck;
using autograd::gradgradcheck;

/// Correct except for one element, by one part in 100,000.
struct SlightlyOff : autograd::Function<SlightlyOff> {
  static constexpr const char* kName = "slightly_off";
  static Tensor forward(Context& context, const Tensor& x) {
    context.save_for_backward({x});
    return sin(x);
  }
  static Tensors backward(Context& context, const Tensors& g) {
    const Tensor slope = cos(context.saved()[0]);
    const Tensor off = Tensor::of<double>({1, 1, 1.00001});
    return {g[0] * slope * off};
  }
};

/// The first derivative is right, the second is missing.
struct NotTwice : autograd::Function<NotTwice> {
  static constexpr const char* kName = "not_twice";
  static Tensor forward(Context& context, const Tensor& x) {
    context.save_for_backward({x});
    return sin(x);
  }
  static Tensors backward(Context& context, const Tensors& g) {
    return {g[0] * cos(context.saved()[0].detach())};
  }
};

TEST(Gradcheck, FindsASlightError) {
  const auto fn = [](const Tensors& in) { return Tensors{SlightlyOff::apply(in[0])}; };
  const std::string found = gradcheck(fn, {leaf({0.3, 0.4, 0.5})});
  EXPECT_NE(found.find("input 0, float64[3], element 2"), std::string::npos) << found;
}

TEST(Gradcheck, FindsAMissingSecondDerivative) {
  const auto fn = [](const Tensors& in) { return Tensors{NotTwice::apply(in[0])}; };
  EXPECT_EQ(gradcheck(fn, {leaf({0.3})}), "");
  EXPECT_NE(gradgradcheck(fn, {leaf({0.3})}), "");
}

/// A result that should depend on its input and does not.
TEST(Gradcheck, FindsAMissingGradient) {
  const auto fn = [](const Tensors& in) { return Tensors{in[0].detach() * 2.0}; };
  EXPECT_NE(gradcheck(fn, {leaf({0.3})}), "");
  const auto half = [](const Tensors& in) { return Tensors{in[0] * in[1].detach()}; };
  const std::string found = gradcheck(half, {leaf({0.3}), leaf({0.4})});
  EXPECT_NE(found.find("input 1"), std::string::npos) << found;
}

TEST(Gradcheck, NothingToCompareIsAnError) {
  const auto none = [](const Tensors&) { return Tensors{}; };
  const auto undefined = [](const Tensors&) { return Tensors{Tensor()}; };
  const auto integers = [](const Tensors& in) { return Tensors{argmax(in[0])}; };
  for (const std::function<Tensors(const Tensors&)>& fn :
       std::vector<std::function<Tensors(const Tensors&)>>{none, undefined, integers}) {
    EXPECT_THROW(gradcheck(fn, {leaf({0.3})}), ValueError);
    EXPECT_THROW(gradgradcheck(fn, {leaf({0.3})}), ValueError);
  }
  const auto constant = [](const Tensors&) { return Tensors{ones({2}, float64)}; };
  EXPECT_EQ(gradcheck(constant, {leaf({0.3})}), "");
  EXPECT_THROW(gradgradcheck(constant, {leaf({0.3})}), GradError);
}

TEST(Gradcheck, NotANumberIsAnError) {
  const auto fn = [](const Tensors& in) { return Tensors{sqrt(in[0])}; };
  EXPECT_NE(gradcheck(fn, {leaf({-1})}), "");
}

TEST(Gradcheck, WhatItRefuses) {
  const auto fn = [](const Tensors& in) { return Tensors{in[0] * 2.0}; };
  EXPECT_THROW(gradcheck(fn, {Tensor::of<double>({1})}), GradError);
  EXPECT_THROW(gradcheck(fn, {Tensor::of<float>({1}).requires_grad_()}), DTypeError);
  EXPECT_THROW(gradgradcheck(fn, {Tensor::of<float>({1}).requires_grad_()}), DTypeError);
}

TEST(Gradcheck, LeavesInputsAsTheyWere) {
  const Tensor x = leaf({0.3, 0.4});
  const auto fn = [](const Tensors& in) { return Tensors{in[0] * in[0]}; };
  EXPECT_EQ(gradgradcheck(fn, {x}), "");
  EXPECT_EQ(values(x), (std::vector<double>{0.3, 0.4}));
  EXPECT_FALSE(x.grad().defined());
}

}  // namespace
}  // namespace baregrad

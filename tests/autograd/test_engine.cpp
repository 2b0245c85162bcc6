// The backward pass: leaves, accumulation, kept and freed graphs, hooks, grad().
#include <cmath>

#include "tests/autograd/support.h"

namespace baregrad {
namespace {

TEST(Engine, PolynomialOfOneVariable) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = sum(x * x * x + 2.0 * x);
  y.backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{5, 14, 29}));
  EXPECT_TRUE(x.is_leaf());
  EXPECT_FALSE(y.is_leaf());
  EXPECT_STREQ(y.grad_fn(), "sum");
  EXPECT_STREQ(x.grad_fn(), "");
}

TEST(Engine, GradientsAddUpOverCalls) {
  const Tensor x = leaf({1, 2});
  sum(x * 3.0).backward();
  sum(x * 4.0).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{7, 7}));
  x.zero_grad();
  EXPECT_FALSE(x.grad().defined());
}

TEST(Engine, BroadcastsAreSummedBack) {
  const Tensor row = leaf({1, 2, 3});
  const Tensor column = Tensor::of<double>({10, 20}, {2, 1}).requires_grad_();
  const Tensor number = Tensor::scalar(2.0, DType::Float64).requires_grad_();
  sum(row * column * number).backward();
  EXPECT_EQ(values(row.grad()), (std::vector<double>{60, 60, 60}));
  EXPECT_EQ(values(column.grad()), (std::vector<double>{12, 12}));
  EXPECT_EQ(column.grad().shape(), (Dims{2, 1}));
  EXPECT_EQ(number.grad().item<double>(), 180);
  EXPECT_EQ(number.grad().ndim(), 0);
}

TEST(Engine, TheSharedPartIsCountedForEveryUse) {
  const Tensor x = leaf({3});
  const Tensor y = x * x;      // 9
  const Tensor z = y * y + y;  // x^4 + x^2
  z.backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{4 * 27 + 6}));
}

TEST(Engine, GradientsOfOtherDtypesComeBackConverted) {
  const Tensor x = Tensor::of<float>({1, 2}).requires_grad_();
  const Tensor w = leaf({3, 4});
  sum(x * w).backward();
  EXPECT_EQ(x.grad().dtype(), DType::Float32);
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(w.grad().dtype(), DType::Float64);
}

TEST(Engine, ASecondBackwardSaysWhatToDo) {
  const Tensor x = leaf({1, 2});
  const Tensor y = sum(x * x);
  y.backward();
  try {
    y.backward();
    FAIL() << "no error";
  } catch (const GradError& e) {
    EXPECT_NE(std::string(e.what()).find("retain_graph"), std::string::npos) << e.what();
  }
  const Tensor z = sum(x * x);
  x.zero_grad();
  z.backward({}, true);
  z.backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{4, 8}));
}

TEST(Engine, NothingIsRecordedUnderNoGrad) {
  const Tensor x = leaf({1, 2});
  Tensor y;
  {
    const no_grad off;
    y = x * 2.0;
    EXPECT_FALSE(autograd::is_grad_enabled());
    {
      const enable_grad on;
      EXPECT_TRUE((x * 2.0).requires_grad());
    }
  }
  EXPECT_TRUE(autograd::is_grad_enabled());
  EXPECT_FALSE(y.requires_grad());
  EXPECT_THROW(sum(y).backward(), GradError);
  EXPECT_FALSE(x.detach().requires_grad());
  EXPECT_TRUE(x.detach().same_storage(x));
}

TEST(Engine, OnlyWhatNeedsAGradientIsRecorded) {
  const std::int64_t before = autograd::live_nodes();
  const Tensor a = Tensor::of<double>({1, 2});
  const Tensor b = exp(a) * a;
  EXPECT_EQ(autograd::live_nodes(), before);
  const Tensor x = leaf({1, 2});
  const Tensor mask = x > 1.5;
  EXPECT_FALSE(mask.requires_grad());
  EXPECT_FALSE(argmax(x).requires_grad());
  EXPECT_EQ(autograd::live_nodes(), before);
  {
    const Tensor y = sum(x * b);
    EXPECT_EQ(autograd::live_nodes(), before + 2);
    y.backward();
  }
  EXPECT_EQ(autograd::live_nodes(), before);
}

TEST(Engine, GradOfSeveralInputsTouchesNoLeaf) {
  const Tensor x = leaf({1, 2});
  const Tensor w = leaf({3, 4});
  const Tensor h = x * w;
  const Tensor y = sum(h * h);
  const Tensors g = autograd::grad({y}, {w, h});
  EXPECT_EQ(values(g[0]), (std::vector<double>{2 * 3 * 1, 2 * 8 * 2}));
  EXPECT_EQ(values(g[1]), (std::vector<double>{6, 16}));
  EXPECT_FALSE(w.grad().defined());
  EXPECT_FALSE(x.grad().defined());
}

TEST(Engine, GradOfAnUnusedInput) {
  const Tensor x = leaf({1});
  const Tensor other = leaf({1});
  const Tensor y = sum(x * x);
  EXPECT_THROW(autograd::grad({y}, {other}, {}, {.retain_graph = true}), GradError);
  const Tensors g = autograd::grad({y}, {x, other}, {}, {.allow_unused = true});
  EXPECT_EQ(values(g[0]), (std::vector<double>{2}));
  EXPECT_FALSE(g[1].defined());
}

TEST(Engine, SeveralOutputsWithGradientsOfTheirOwn) {
  const Tensor x = leaf({1, 2});
  autograd::backward({x * 2.0, x * x}, {Tensor::of<double>({1, 1}), Tensor::of<double>({1, 10})});
  EXPECT_EQ(values(x.grad()), (std::vector<double>{2 + 2, 2 + 40}));
}

TEST(Engine, HigherDerivatives) {
  const Tensor x = leaf({2});
  Tensor y = x * x * x * x;
  for (const double expected : {32.0, 48.0, 48.0, 24.0}) {
    y = autograd::grad({y}, {x}, {}, {.create_graph = true})[0];
    EXPECT_EQ(values(y), (std::vector<double>{expected}));
  }
}

TEST(Engine, SecondDerivativeThroughBackward) {
  const Tensor x = leaf({3});
  const Tensor y = exp(x * 2.0);
  y.backward({}, {}, true);
  const Tensor first = x.grad();
  EXPECT_TRUE(first.requires_grad());
  x.zero_grad();
  first.backward();
  EXPECT_NEAR(values(x.grad())[0], 4 * std::exp(6.0), 1e-9);
}

TEST(Engine, HooksSeeAndReplace) {
  const Tensor x = leaf({1, 2});
  const Tensor h = x * 3.0;
  std::vector<double> seen;
  const int id = h.register_hook([&](const Tensor& g) {
    seen = values(g);
    return g * 10.0;
  });
  x.register_hook([](const Tensor&) { return Tensor(); });  // does not change the gradient
  sum(h).backward({}, true);
  EXPECT_EQ(seen, (std::vector<double>{1, 1}));
  EXPECT_EQ(values(x.grad()), (std::vector<double>{30, 30}));
  h.remove_hook(id);
  x.zero_grad();
  sum(h).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{3, 3}));
}

TEST(Engine, AHookOfAnotherShapeIsRefused) {
  const Tensor x = leaf({1, 2});
  x.register_hook([](const Tensor& g) { return sum(g); });
  EXPECT_THROW(sum(x * 2.0).backward(), GradError);
}

TEST(Engine, RetainGradKeepsWhatPasses) {
  const Tensor x = leaf({1, 2});
  const Tensor h = x * 3.0;
  h.retain_grad();
  EXPECT_FALSE(h.grad().defined());
  sum(h * h).backward();
  EXPECT_EQ(values(h.grad()), (std::vector<double>{6, 12}));
}

TEST(Engine, WhatMayRequireAGradient) {
  EXPECT_THROW(Tensor::of<std::int64_t>({1}).requires_grad_(), DTypeError);
  const Tensor x = leaf({1});
  EXPECT_THROW((x * 2.0).requires_grad_(false), GradError);
  EXPECT_NO_THROW((x * 2.0).requires_grad_());
  x.requires_grad_(false);
  EXPECT_FALSE((x * 2.0).requires_grad());
  EXPECT_THROW(Tensor().requires_grad_(), ValueError);
}

TEST(Engine, TheGradientMustBeGivenWhereItIsNotANumber) {
  const Tensor x = leaf({1, 2});
  EXPECT_THROW((x * 2.0).backward(), GradError);
  EXPECT_THROW((x * 2.0).backward(Tensor::of<double>({1, 2, 3})), ShapeError);
  EXPECT_THROW((x * 2.0).backward(Tensor::of<std::int64_t>({1, 2})), DTypeError);
  (x * 2.0).backward(Tensor::of<double>({1, 10}));
  EXPECT_EQ(values(x.grad()), (std::vector<double>{2, 20}));
}

TEST(Engine, AGradientOfItsOwnIsNotSharedWithTheCaller) {
  const Tensor x = leaf({1, 2});
  const Tensor g = Tensor::of<double>({1, 1});
  alias(x).backward(g);
  sum(x).backward();
  EXPECT_EQ(values(g), (std::vector<double>{1, 1}));
  EXPECT_EQ(values(x.grad()), (std::vector<double>{2, 2}));
}

TEST(Engine, SetGradChecksShapeAndPlace) {
  const Tensor x = leaf({1, 2});
  EXPECT_THROW(x.set_grad(Tensor::of<double>({1})), ShapeError);
  EXPECT_THROW((x * 1.0).set_grad(Tensor::of<double>({1, 2})), GradError);
  EXPECT_THROW(x.set_grad(x), ValueError);  // would never be freed
  x.set_grad(Tensor::of<double>({5, 6}));
  sum(x).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{6, 7}));
}

/// A gradient with a history refers to its own leaf: this must not make a reference cycle.
TEST(Engine, RecordedGradientsOfLeavesAreFreed) {
  const std::int64_t before = autograd::live_nodes();
  {
    const Tensor x = leaf({1, 2});
    const Tensor y = leaf({3, 4});
    for (int i = 0; i < 2; ++i) sum(x * x * y).backward({}, {}, true);
    EXPECT_TRUE(x.grad().requires_grad());
    EXPECT_EQ(values(x.grad()), (std::vector<double>{12, 32}));
  }
  EXPECT_EQ(autograd::live_nodes(), before);
}

/// The leaf's tensor is gone, its graph is not: its gradient is dropped, the others are
/// accumulated.
TEST(Engine, ALeafWithoutItsTensor) {
  const Tensor x = leaf({1, 2});
  Tensor y;
  {
    const Tensor lost = leaf({3, 4});
    y = sum(x * lost);
  }
  y.backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{3, 4}));
}

// All nodes are ready at once.
TEST(Engine, AHundredThousandOpsWide) {
  constexpr int kParts = 100000;
  const Tensor x = leaf({1});
  std::vector<Tensor> parts;
  parts.reserve(kParts);
  for (int i = 0; i < kParts; ++i) parts.push_back(x * 2.0);
  sum(concat(parts, 0)).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{2.0 * kParts}));
}

TEST(Engine, NO_TSAN_AMillionOpsDeep) {
  const std::int64_t before = autograd::live_nodes();
  const Tensor x = leaf({1});
  {
    Tensor y = x;
    for (int i = 0; i < 1000000; ++i) y = y + 1.0;
    EXPECT_EQ(autograd::live_nodes(), before + 1000000);
    y.backward();
    EXPECT_EQ(values(x.grad()), (std::vector<double>{1}));
  }
  EXPECT_EQ(autograd::live_nodes(), before);
}

}  // namespace
}  // namespace baregrad

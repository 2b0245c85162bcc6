// In-place ops and views: gradients where they are defined, else errors.
#include "tests/autograd/support.h"

namespace baregrad {
namespace {

TEST(InPlace, AddsToTheHistory) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2.0;
  add_(y, x);
  multiply_(y, 3.0);
  sum(y).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{9, 9}));
}

TEST(InPlace, AnOldValueThatIsNeededWasCopied) {
  const Tensor x = leaf({2, 3});
  const Tensor w = leaf({5, 7});
  const Tensor y = x * 1.0;
  multiply_(y, w);
  sum(y).backward();
  EXPECT_EQ(values(w.grad()), (std::vector<double>{2, 3}));
  EXPECT_EQ(values(x.grad()), (std::vector<double>{5, 7}));
}

TEST(InPlace, AValueOverwrittenSinceIsNoticed) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 1.0;
  const Tensor z = sum(y * y);
  add_(y, 1.0);
  try {
    z.backward();
    FAIL() << "no error";
  } catch (const GradError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("multiply"), std::string::npos) << text;
    EXPECT_NE(text.find("float64[2]"), std::string::npos) << text;
  }
}

TEST(InPlace, NoticedThroughAnyView) {
  for (const bool detached : {false, true}) {
    const Tensor x = leaf({1, 2, 3, 4});
    const Tensor y = x * 1.0;
    const Tensor e = exp(y);
    const Tensor part = narrow(reshape(detached ? e.detach() : e, {2, 2}), 0, 1, 1);
    fill_(part, 0);
    EXPECT_THROW(sum(e).backward(), GradError) << detached;
  }
}

TEST(InPlace, ALeafCannotBeWrittenInto) {
  const Tensor x = leaf({1, 2});
  EXPECT_THROW(add_(x, 1.0), GradError);
  EXPECT_THROW(fill_(narrow(x, 0, 0, 1), 0.0), GradError);
  EXPECT_EQ(values(x), (std::vector<double>{1, 2}));
  const no_grad off;
  add_(x, 1.0);
  EXPECT_EQ(values(x), (std::vector<double>{2, 3}));
}

TEST(InPlace, IntoABufferThroughAView) {
  const Tensor x = leaf({1, 2});
  const Tensor buffer = zeros({4}, DType::Float64);
  const Tensor part = narrow(buffer, 0, 1, 2);
  copy_(part, x * 3.0);
  EXPECT_TRUE(buffer.requires_grad());
  EXPECT_TRUE(part.requires_grad());
  sum(buffer * Tensor::of<double>({1, 10, 100, 1000})).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{30, 300}));
}

TEST(InPlace, AViewSeesWhatIsWrittenIntoItsBase) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = x * 1.0;
  const Tensor view = narrow(y, 0, 1, 2);
  multiply_(y, 5.0);
  sum(view).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{0, 5, 5}));
}

TEST(InPlace, SiblingsSeeEachOthersWrites) {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor y = x * 1.0;
  const Tensor left = narrow(y, 0, 0, 3);
  const Tensor right = narrow(y, 0, 1, 3);
  multiply_(left, 10.0);
  sum(right).backward({}, true);
  EXPECT_EQ(values(x.grad()), (std::vector<double>{0, 10, 10, 1}));
  x.zero_grad();
  fill_(right, 0.0);
  sum(left + 0.0 * left).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{10, 0, 0, 0}));
}

TEST(InPlace, TransposedAndReversedViews) {
  const Tensor x = Tensor::of<double>({1, 2, 3, 4, 5, 6}, {2, 3}).requires_grad_();
  const Tensor y = x * 1.0;
  const Tensor view = flip(y.mT(), 0);  // [3,2], rows 2 1 0
  multiply_(view[0], 100.0);            // column 2 of y
  sum(y).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{1, 1, 100, 1, 1, 100}));
}

TEST(InPlace, IndexPutKeepsTheOthersAndTheLastOfTheSame) {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor v = leaf({10, 20, 30});
  const Tensor y = x * 1.0;
  y.index_put_({Tensor::of<std::int64_t>({0, 2, 0})}, v);
  EXPECT_EQ(values(y), (std::vector<double>{30, 2, 20, 4}));
  sum(y * Tensor::of<double>({1, 10, 100, 1000})).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{0, 10, 0, 1000}));
  EXPECT_EQ(values(v.grad()), (std::vector<double>{0, 100, 1}));
}

TEST(InPlace, SecondDerivativeThroughAWrittenView) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = x * x;
  multiply_(narrow(y, 0, 0, 2), x[2]);
  const Tensor g = autograd::grad({sum(y)}, {x}, {}, {.create_graph = true})[0];
  EXPECT_EQ(values(g), (std::vector<double>{6, 12, 1 + 4 + 6}));
  const Tensor h = autograd::grad({sum(g)}, {x})[0];
  // d/dx0 (2 x0 x2 + x0^2) = 2 x2 + 2 x0, d/dx2 (2 x0 + 2 x1 + 2 x2) = 2 x0 + 2 x1 + 2
  EXPECT_EQ(values(h), (std::vector<double>{8, 10, 8}));
}

TEST(InPlace, AViewMadeUnderNoGradIsNotWrittenWithHistory) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 1.0;
  Tensor view;
  {
    const no_grad off;
    view = narrow(y, 0, 0, 1);
  }
  EXPECT_FALSE(view.requires_grad());
  EXPECT_THROW(multiply_(view, x[0]), GradError);
}

TEST(InPlace, FillForgets) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2.0;
  fill_(y, 3.0);
  EXPECT_TRUE(y.requires_grad());
  sum(y + x).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{1, 1}));
}

/// Parameters are often views: reshaped, or parts of one buffer.
TEST(InPlace, ALeafThatIsAViewStaysOne) {
  const Tensor buffer = Tensor::of<double>({1, 2, 3, 4});
  const Tensor w = reshape(narrow(buffer, 0, 0, 2), {2, 1}).requires_grad_();
  for (int step = 0; step < 3; ++step) {
    w.zero_grad();
    sum(w * w).backward();
    EXPECT_EQ(values(w.grad()), (std::vector<double>{2.0 + 2 * step, 4.0 + 2 * step}));
    const no_grad off;
    if (step == 0) {
      add_(w, 1.0);
    } else {
      add_(buffer, 1.0);
    }
  }
  EXPECT_TRUE(w.is_leaf());
  EXPECT_TRUE(w.requires_grad());
  EXPECT_THROW(add_(w, 1.0), GradError);
  EXPECT_THROW(add_(narrow(w, 0, 0, 1), 1.0), GradError);
  w.requires_grad_(false);
  EXPECT_NO_THROW(add_(w, 1.0));
}

TEST(InPlace, NoCycleKeepsNodesAlive) {
  const std::int64_t before = autograd::live_nodes();
  {
    const Tensor w = leaf({2, 3});
    const Tensor x = Tensor::of<double>({1, 1});
    const Tensor y = x * w;  // keeps x
    add_(x, y);              // x's history now leads through y
    add_(narrow(x, 0, 0, 1), y[0]);
  }
  EXPECT_EQ(autograd::live_nodes(), before);
}

TEST(InPlace, MatmulOutAddsAndReplaces) {
  const Tensor a = Tensor::of<double>({1, 2, 3, 4}, {2, 2}).requires_grad_();
  const Tensor b = Tensor::of<double>({5, 6, 7, 8}, {2, 2}).requires_grad_();
  const Tensor start = Tensor::of<double>({1, 1, 1, 1}, {2, 2}).requires_grad_();
  const Tensor out = start * 3.0;
  matmul_out(out, a, b, true);
  sum(out).backward();
  EXPECT_EQ(values(start.grad()), (std::vector<double>{3, 3, 3, 3}));
  EXPECT_EQ(values(a.grad()), (std::vector<double>{11, 15, 11, 15}));
  EXPECT_EQ(values(b.grad()), (std::vector<double>{4, 4, 6, 6}));
}

}  // namespace
}  // namespace baregrad

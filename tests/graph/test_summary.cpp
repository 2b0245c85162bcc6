// summary: the table, cell by cell, and its totals.
#include "tests/graph/support.h"

namespace baregrad {
namespace {

using graph::summary;

struct Cube : autograd::Function<Cube> {
  static constexpr const char* kName = "cube";
  static Tensor forward(autograd::Context& context, const Tensor& x) {
    context.save_for_backward({x});
    return x * x * x;
  }
  static autograd::Tensors backward(autograd::Context& context, const autograd::Tensors& g) {
    const Tensor x = context.saved()[0];
    return {g[0] * (3.0 * x * x)};
  }
};

TEST(Summary, TheWholeTable) {
  const Tensor x = ones({64, 784});
  const Tensor w = ones({10, 784}).requires_grad_();
  const Tensor b = zeros({10}).requires_grad_();
  Tensor h;
  {
    const autograd::Label label("head");
    h = relu(matmul(x, w.mT()) + b);
  }
  const Tensor loss = sum(h);
  EXPECT_EQ(summary(loss, {.names = {{"weight", w}, {"bias", b}}}),
            "node  op             shape     dtype        saved  inputs  label\n"
            "----------------------------------------------------------------\n"
            "#0    leaf \"weight\"  [10,784]  float32\n"
            "#1    leaf \"bias\"    [10]      float32\n"
            "#2    permute_dims   [784,10]  float32             #0      head\n"
            "#3    matmul         [64,10]   float32  196.0 KiB  -, #2   head\n"
            "#4    add            [64,10]   float32             #3, #1  head\n"
            "#5    relu           [64,10]   float32    2.5 KiB  #4      head\n"
            "#6    sum            []        float32             #5\n"
            "5 ops, 2 leaves with 7,850 parameters, 198.5 KiB kept for backward\n");
}

TEST(Summary, MemoryThatSeveralKeepCountsOnceAndGoesWithBackward) {
  const Tensor x = ones({256}).requires_grad_();
  const Tensor y = sum(x * x) + sum(exp(x) * x);
  // x counts twice in x * x, and in exp(x) * x beside exp's result, which exp keeps too.
  EXPECT_TRUE(has(summary(y), ", 2.0 KiB kept for backward\n")) << summary(y);
  y.backward();
  EXPECT_TRUE(has(summary(y), "freed")) << summary(y);
  EXPECT_TRUE(has(summary(y), ", 0 B kept for backward\n")) << summary(y);
}

TEST(Summary, FunctionsAndCheckpointsSayWhatTheyKeep) {
  const Tensor x = ones({256}).requires_grad_();
  EXPECT_TRUE(has(summary(Cube::apply(x)), "cube  [256]  float32  1.0 KiB"))
      << summary(Cube::apply(x));
  const Tensor y = autograd::checkpoint(
      [](const autograd::Tensors& in) { return autograd::Tensors{exp(exp(in[0]))}; }, {x})[0];
  EXPECT_TRUE(has(summary(y), "checkpoint  [256]  float32  1.0 KiB")) << summary(y);
}

TEST(Summary, NO_TSAN_RowsLeftOutOfAMillionNodesAreStillCounted) {
  const Tensor x = ones({2}).requires_grad_();
  Tensor h = x;
  for (int i = 0; i < 1'000'000; ++i) h = negative(h);
  const std::string text = summary(h, {.max_nodes = 3});
  EXPECT_TRUE(has(text, "#0    negative  [2]    float32  ...\n")) << text;
  EXPECT_TRUE(has(text, "... and 999,998 more\n1,000,000 ops, 1 leaf with 2 parameters, 0 B"))
      << text;
}

TEST(Summary, ManyInputsAndHostileNames) {
  std::vector<Tensor> parts;
  graph::Names names;
  for (int i = 0; i < 20; ++i) {
    parts.push_back(ones({1}).requires_grad_());
    names.emplace_back("p\x1B\n" + std::to_string(i), parts.back());
  }
  const std::string text = summary(concat(parts, 0), {.names = names});
  EXPECT_TRUE(has(text, "#0, #1, #2, #3, #4, #5, #6, #7, ... 12 more\n")) << text;
  EXPECT_TRUE(has(text, "leaf \"p\\x1b\\n19\"")) << text;
  EXPECT_FALSE(has(text, "\x1B"));
}

TEST(Summary, WhatItRefuses) {
  EXPECT_THROW(summary(Tensor()), ValueError);
  EXPECT_THROW(summary(ones({1})), GradError);
  EXPECT_THROW(summary(ones({1}).requires_grad_(), {.max_nodes = -1}), ValueError);
}

}  // namespace
}  // namespace baregrad

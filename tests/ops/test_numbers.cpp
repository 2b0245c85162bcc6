// Elementwise ops with a number: the bits are those with a tensor full of it, for every path of
// dispatch that a size, a layout or a history selects.
#include <cstring>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/ops.h"

namespace baregrad {
namespace {

struct Op {
  const char* name;
  Tensor (*run)(const Operand&, const Operand&);
  const Tensor& (*in_place)(const Tensor&, const Operand&);  // null for comparisons
};

/// Ops that take floats; integer ops refuse them before a path is chosen.
std::vector<Op> float_ops() {
  std::vector<Op> out;
#define BG_BINARY(name, rule, doc)                               \
  if (!std::string_view(#name).starts_with("bitwise")) {         \
    out.push_back({#name, &baregrad::name, &baregrad::name##_}); \
  }
#define BG_COMPARE(name, rule, doc) out.push_back({#name, &baregrad::name, nullptr});
#include "ops/ops.def"
  return out;
}

/// Bit for bit, NaN included.
void expect_same(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.dtype(), b.dtype()) << what;
  ASSERT_EQ(a.shape(), b.shape()) << what;
  const Tensor x = a.contiguous();
  const Tensor y = b.contiguous();
  if (x.numel() == 0) return;
  EXPECT_EQ(std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()), 0) << what;
}

// Sizes around those at which dispatch changes its path.
const std::vector<Dims> kShapes{{}, {0}, {1}, {5}, {3, 4}, {255}, {256}, {257}, {8193}};

class Numbers : public testing::TestWithParam<DType> {};

TEST_P(Numbers, AreFullTensors) {
  for (const Op& op : float_ops()) {
    for (const Dims& shape : kShapes) {
      const Tensor x = uniform(shape, -2.0, 2.0, GetParam());
      for (const Scalar& number : {Scalar(1.5), Scalar(-3), Scalar(true), Scalar(0.1)}) {
        const Tensor full = full_like(x, number);
        const Tensor zero_d = Tensor::scalar(number, GetParam());
        const std::string what = std::string(op.name) + " " + describe(x);
        expect_same(op.run(x, number), op.run(x, full), what);
        expect_same(op.run(number, x), op.run(full, x), what + ", number first");
        expect_same(op.run(x, zero_d), op.run(x, full), what + ", 0-d");
        expect_same(op.run(zero_d, x), op.run(full, x), what + ", 0-d first");
        if (op.in_place == nullptr) continue;
        const Tensor a = x.clone();
        const Tensor b = x.clone();
        expect_same(op.in_place(a, number), op.in_place(b, full), what + ", in place");
      }
    }
  }
}

TEST_P(Numbers, InOtherLayouts) {
  const Tensor base = uniform({6, 8}, -2.0, 2.0, GetParam());
  for (const Tensor& x :
       {base.mT(), slice(base, 1, {1, 7, 2}), flip(base), expand(base[0], {3, 8})}) {
    expect_same(x * 1.7, x.contiguous() * full(x.shape(), 1.7, GetParam()), describe(x));
    expect_same(1.7 - x, full(x.shape(), 1.7, GetParam()) - x.contiguous(), describe(x));
  }
}

TEST_P(Numbers, InPlaceFromAnElementOfItself) {
  const Tensor x = uniform({7}, 1.0, 2.0, GetParam());
  const Tensor expected = x + full_like(x, x[3].item());
  add_(x, x[3]);
  expect_same(x, expected, "add_");
}

TEST_P(Numbers, AreRecorded) {
  const Tensor x = uniform({5}, 1.0, 2.0, GetParam());
  x.requires_grad_();
  const Tensor y = x * 3.0;
  EXPECT_STREQ(y.grad_fn(), "multiply");
  sum(2.0 - y).backward();
  expect_same(x.grad(), full_like(x, -3.0), "gradient");
}

INSTANTIATE_TEST_SUITE_P(Floats, Numbers, testing::Values(DType::Float32, DType::Float64),
                         [](const auto& row) { return std::string(name(row.param)); });

}  // namespace
}  // namespace baregrad

// Every row of the op table: its gradient and second derivative against finite differences.
#include <algorithm>

#include "autograd/rules.h"
#include "tests/autograd/support.h"
#include "tests/op_table/support.h"

namespace baregrad {
namespace {

using op_table::OpRow;

const OpRow& row_of(OpId op) { return *op_table::find_row(op); }

bool refuses_empty(OpId op) { return op == OpId::amax || op == OpId::amin; }

TEST(Rules, AnOpWithoutARuleIsOnTheList) {
  for (int i = 0; i < kNumOps; ++i) {
    const auto op = static_cast<OpId>(i);
    // A count has a rule as the norm of order 0, which is floating.
    const bool has_rule = is_differentiable(op) || op == OpId::count_nonzero;
    EXPECT_EQ(autograd::rule_row(op).rule != nullptr, has_rule) << op_name(op);
  }
}

TEST(Rules, ResultsOfOthersDoNotRequireAGradient) {
  for (const OpId op : not_differentiable()) {
    const OpRow& row = row_of(op);
    for (const DType dtype : {DType::Float32, DType::Float64}) {
      if (std::find(row.dtypes.begin(), row.dtypes.end(), dtype) == row.dtypes.end()) continue;
      op_table::Rng rng(3);
      const Tensors inputs = as_leaves(row.inputs(rng, dtype, {3, 4}));
      for (const Tensor& out : row.call(inputs)) EXPECT_FALSE(out.requires_grad()) << op_name(op);
    }
  }
}

class Rule : public ::testing::TestWithParam<OpId> {
 protected:
  const OpRow& row() const { return row_of(GetParam()); }

  void check(const Tensors& inputs, const std::string& what) const {
    const auto fn = [this](const Tensors& in) { return call_row(row(), in); };
    const Tensors outputs = fn(inputs);
    ASSERT_TRUE(std::any_of(outputs.begin(), outputs.end(), [](const Tensor& t) {
      return t.requires_grad();
    })) << what;
    EXPECT_EQ(autograd::gradcheck(fn, inputs), "") << what;
    EXPECT_EQ(autograd::gradgradcheck(fn, inputs), "") << what << ", second derivative";
  }
};

TEST_P(Rule, NO_TSAN_HoldsForContiguousInputs) {
  for (const Dims& shape : {Dims{5}, Dims{3, 4}, Dims{4, 3}, Dims{2, 3, 2}}) {
    check(as_leaves(smooth_inputs(row(), 1, shape)), to_string(shape));
  }
}

TEST_P(Rule, NO_TSAN_HoldsForEveryLayout) {
  // This row tests memory, not elements.
  if (GetParam() == OpId::as_strided) return;
  for (const op_table::LayoutKind kind : op_table::kLayouts) {
    Tensors inputs = smooth_inputs(row(), 2, {3, 4});
    for (Tensor& t : inputs) t = op_table::relaid(t, kind);
    check(as_leaves(inputs), "layout " + std::to_string(static_cast<int>(kind)));
  }
}

TEST_P(Rule, NO_TSAN_HoldsForZeroDimensionalInputs) {
  check(as_leaves(smooth_inputs(row(), 3, {})), "0-d");
}

TEST_P(Rule, NO_TSAN_HoldsForNothing) {
  if (refuses_empty(GetParam())) return;
  for (const Dims& shape : {Dims{0}, Dims{0, 3}, Dims{3, 0}}) {
    const Tensors inputs = as_leaves(smooth_inputs(row(), 4, shape));
    check(inputs, to_string(shape));
    // The gradients exist, with the shapes of the inputs.
    Tensors outputs = call_row(row(), inputs);
    std::erase_if(outputs, [](const Tensor& t) { return !t.requires_grad(); });
    Tensors seeds;
    for (const Tensor& t : outputs) seeds.push_back(ones_like(t));
    autograd::backward(outputs, seeds);
    int found = 0;
    for (const Tensor& t : inputs) {
      if (!t.grad().defined()) continue;
      ++found;
      EXPECT_EQ(t.grad().shape(), t.shape()) << to_string(shape);
    }
    EXPECT_GT(found, 0) << to_string(shape);
  }
}

TEST_P(Rule, NO_TSAN_HoldsForBroadcastOperands) {
  if (!row().elementwise || row().tensors < 2) return;
  for (int small = 0; small < row().tensors; ++small) {
    for (const Dims& shape : {Dims{}, Dims{1}, Dims{4}, Dims{3, 1}}) {
      Tensors inputs = smooth_inputs(row(), 5, {3, 4});
      const std::vector<Range> ranges = domain_of(GetParam());
      const auto k = static_cast<std::size_t>(small);
      Spread spread(6);
      inputs[k] = spread.draw(shape, ranges[std::min(k, ranges.size() - 1)]);
      check(as_leaves(inputs), "input " + std::to_string(small) + " of shape " + to_string(shape));
    }
  }
}

/// Through a view of the leaf, and through an expanded one.
TEST_P(Rule, NO_TSAN_HoldsForViews) {
  if (GetParam() == OpId::as_strided) return;
  const auto fn = [this](const Tensors& in) {
    Tensors seen;
    for (const Tensor& t : in) {
      seen.push_back(is_floating(t.dtype()) && t.ndim() > 1 ? flip(t.mT(), 0) : t);
    }
    return call_row(row(), seen);
  };
  Tensors inputs = smooth_inputs(row(), 7, {3, 4});
  for (Tensor& t : inputs) {
    if (is_floating(t.dtype()) && t.ndim() > 1) t = flip(t, 0).mT().contiguous();
  }
  inputs = as_leaves(inputs);
  EXPECT_EQ(autograd::gradcheck(fn, inputs), "");
  EXPECT_EQ(autograd::gradgradcheck(fn, inputs), "");
}

/// One input at a time requires a gradient: what the op keeps must suffice.
TEST_P(Rule, NO_TSAN_HoldsForEachInputAlone) {
  const Tensors inputs = smooth_inputs(row(), 8, {3, 4});
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!is_floating(inputs[k].dtype())) continue;
    if (GetParam() == OpId::where && k == 0) continue;  // the condition has none
    Tensors only = inputs;
    only[k] = only[k].detach().requires_grad_();
    check(only, "input " + std::to_string(k));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Rule, ::testing::ValuesIn(differentiable_ops()), op_case_name);

}  // namespace
}  // namespace baregrad

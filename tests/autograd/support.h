// Helpers for tests of gradients: leaves, the values of an op's inputs, bits.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/baregrad.h"
#include "tests/op_table/op_table.h"

namespace baregrad {

using autograd::Tensors;

inline Tensor leaf(std::initializer_list<double> values) {
  return Tensor::of<double>(values).requires_grad_();
}
inline Tensor leaf(std::initializer_list<double> values, const Dims& shape) {
  return Tensor::of<double>(std::vector<double>(values), shape).requires_grad_();
}
inline std::vector<double> values(const Tensor& t) { return t.to_vector<double>(); }

/// Values where an op's gradient is defined and smooth.
struct Range {
  double low = -2;
  double high = 2;
};
/// The ranges of an op's inputs, one per input (the last applies to the rest). Only this function
/// knows which ops have poles and edges.
std::vector<Range> domain_of(OpId op);

/// Draws values that differ from each other and from all multiples of 1/2: no ties, no kinks,
/// nothing that a step of finite differences could cross.
class Spread {
 public:
  explicit Spread(std::uint64_t seed) : rng_(seed) {}
  Tensor draw(const Dims& shape, const Range& range = {});

 private:
  op_table::Rng rng_;
  std::vector<double> taken_;
};

/// The call of an op's row in tests of gradients: the row's own, except for rows that do more than
/// float64 can follow.
Tensors call_row(const op_table::OpRow& row, const Tensors& inputs);

/// Floating inputs of a row, with spread values; other inputs as the row makes them.
Tensors smooth_inputs(const op_table::OpRow& row, std::uint64_t seed, const Dims& shape);
/// The same from the op's range, possibly with ties, for any number of elements.
Tensors many_inputs(const op_table::OpRow& row, std::uint64_t seed, const Dims& shape);

/// New leaves with these values; inputs that are not floating are passed through.
Tensors as_leaves(const Tensors& inputs);

/// The op takes float64 and is not on the list of those without a gradient.
bool is_differentiable(OpId op);
std::vector<OpId> differentiable_ops();
/// The name of the test case of an op.
inline std::string op_case_name(const ::testing::TestParamInfo<OpId>& op) {
  return op_name(op.param);
}
/// Ops without a gradient; the list states why.
const std::vector<OpId>& not_differentiable();

}  // namespace baregrad

// Domains of ops, inputs drawn from them, and the list of ops without a gradient.
#include "tests/autograd/support.h"

#include <algorithm>
#include <cmath>

namespace baregrad {

namespace {

using op_table::OpRow;
using op_table::Rng;

struct Domain {
  OpId op;
  std::vector<Range> ranges;
};

const std::vector<Domain>& domains() {
  const Range positive{0.3, 3};
  const Range inside_one{-0.8, 0.8};
  static const std::vector<Domain> list = {
      {OpId::sqrt, {positive}},
      {OpId::rsqrt, {positive}},
      {OpId::reciprocal, {positive}},
      {OpId::log, {positive}},
      {OpId::log2, {positive}},
      {OpId::log10, {positive}},
      {OpId::log1p, {{-0.6, 3}}},
      {OpId::tan, {{-1.2, 1.2}}},
      {OpId::asin, {inside_one}},
      {OpId::acos, {inside_one}},
      {OpId::atanh, {inside_one}},
      {OpId::acosh, {{1.3, 4}}},
      {OpId::hardswish, {{-4.4, 4.4}}},
      {OpId::divide, {{-2, 2}, {0.6, 3}}},
      {OpId::pow, {{0.3, 2.2}, {-2, 2.5}}},
      // Quotients between 2.1 and 2.8: the remainder jumps at integers.
      {OpId::remainder, {{4.05, 4.45}, {1.6, 1.9}}},
      {OpId::atan2, {{-2, 2}, {0.4, 2}}},
      {OpId::hypot, {{-2, 2}, {0.4, 2}}},
      {OpId::bernoulli, {{0.1, 0.9}}},
      // Products of positive rows are positive; these have both signs.
      {OpId::linear, {{-2, 2}}},
  };
  return list;
}

}  // namespace

std::vector<Range> domain_of(OpId op) {
  for (const Domain& d : domains()) {
    if (d.op == op) return d.ranges;
  }
  return {Range{}};
}

Tensor Spread::draw(const Dims& shape, const Range& range) {
  constexpr double kFromKinks = 0.02;
  constexpr double kApart = 0.008;
  std::uniform_real_distribution<double> pick(range.low, range.high);
  const Tensor t = empty(shape, DType::Float64, Device());
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    for (int tries = 0;; ++tries) {
      const double v = pick(rng_);
      const double kink = std::fabs(v * 2 - std::nearbyint(v * 2)) / 2;
      const bool free = std::none_of(taken_.begin(), taken_.end(),
                                     [v](double w) { return std::fabs(v - w) < kApart; });
      if (tries < 100000 && (kink < kFromKinks || !free)) continue;
      EXPECT_LT(tries, 100000) << "no room for so many values";
      taken_.push_back(v);
      t.data<double>()[i] = v;
      break;
    }
  }
  return t.to(default_device());
}

Tensors call_row(const OpRow& row, const Tensors& inputs) {
  // The row converts to every dtype; finite differences of float32 are too inaccurate.
  if (row.op == OpId::astype) return {astype(inputs[0], DType::Float64, true)};
  return row.call(inputs);
}

namespace {

template <class Draw>
Tensors redrawn(const OpRow& row, std::uint64_t seed, const Dims& shape, const Draw& draw) {
  Rng rng(seed);
  Tensors inputs = row.inputs(rng, DType::Float64, shape);
  const std::vector<Range> ranges = domain_of(row.op);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!is_floating(inputs[k].dtype())) continue;
    inputs[k] = draw(inputs[k].shape(), ranges[std::min(k, ranges.size() - 1)]);
  }
  return inputs;
}

}  // namespace

Tensors smooth_inputs(const OpRow& row, std::uint64_t seed, const Dims& shape) {
  Spread spread(seed);
  return redrawn(row, seed, shape,
                 [&](const Dims& s, const Range& range) { return spread.draw(s, range); });
}

Tensors many_inputs(const OpRow& row, std::uint64_t seed, const Dims& shape) {
  Rng rng(seed + 1);
  return redrawn(row, seed, shape, [&](const Dims& s, const Range& range) {
    return op_table::sample(rng, DType::Float64, s, range.low, range.high);
  });
}

Tensors as_leaves(const Tensors& inputs) {
  Tensors leaves;
  for (const Tensor& t : inputs) {
    const bool floats = t.defined() && is_floating(t.dtype());
    leaves.push_back(floats ? t.detach().requires_grad_() : t);
  }
  return leaves;
}

const std::vector<OpId>& not_differentiable() {
  static const std::vector<OpId> list = {
      // Bits and truth values.
      OpId::bitwise_invert, OpId::isnan, OpId::isinf, OpId::isfinite, OpId::signbit,
      OpId::logical_not, OpId::bitwise_and, OpId::bitwise_or, OpId::bitwise_xor,
      OpId::bitwise_left_shift, OpId::bitwise_right_shift, OpId::equal, OpId::not_equal, OpId::less,
      OpId::less_equal, OpId::greater, OpId::greater_equal, OpId::logical_and, OpId::logical_or,
      OpId::logical_xor, OpId::any, OpId::all,
      // Optimizer steps are not differentiated, as in PyTorch.
      OpId::nextafter,
      // Counts and positions.
      OpId::count_nonzero, OpId::argmax, OpId::argmin, OpId::nonzero, OpId::searchsorted,
      OpId::unique,
      // Ops without inputs, and random ops.
      OpId::fill, OpId::arange, OpId::linspace, OpId::eye, OpId::random_uniform,
      OpId::random_normal, OpId::random_int, OpId::random_perm, OpId::bernoulli,
      // One-pass gradients, which the rules call where nothing is recorded.
      OpId::layer_norm_backward, OpId::rms_norm_backward, OpId::batch_norm_backward,
      OpId::cross_entropy_backward, OpId::attention_backward,
      // Gradients are autograd::Functions of linalg/.
      OpId::linalg_cholesky, OpId::linalg_det, OpId::linalg_slogdet, OpId::linalg_inv,
      OpId::linalg_solve, OpId::linalg_eigh, OpId::linalg_eigvalsh, OpId::linalg_qr,
      OpId::linalg_svd, OpId::linalg_svdvals,
      // Steps of initialisers.
      OpId::normal_quantile, OpId::linalg_orthonormal_rows, OpId::optimizer_step,
      OpId::square_sum_of_all};
  return list;
}

std::vector<OpId> differentiable_ops() {
  std::vector<OpId> out;
  for (const OpRow& row : op_table::rows()) {
    if (is_differentiable(row.op)) out.push_back(row.op);
  }
  return out;
}

bool is_differentiable(OpId op) {
  const std::vector<OpId>& none = not_differentiable();
  return std::find(none.begin(), none.end(), op) == none.end();
}

}  // namespace baregrad

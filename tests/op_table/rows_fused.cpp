// Rows of the fused ops. tests/ops (test_norms.cpp, test_cross_entropy.cpp, test_attention.cpp)
// compares their values with written-out loops. The runners here check their gradients, and that
// layout, threads, ISA and failing memory change nothing.
#include <algorithm>

#include "baregrad/ops_fused.h"
#include "ops/dispatch.h"
#include "ops/fused.h"
#include "tests/op_table/op_table.h"

namespace baregrad::op_table {

namespace {

using Call = std::function<std::vector<Tensor>(const Inputs&)>;

Tensor like(Rng& rng, DType dtype, const Dims& shape) { return sample(rng, dtype, shape); }

/// [T, ...] as a matrix of rows.
Tensor as_matrix(const Tensor& x) {
  if (x.ndim() == 2) return x;
  return x.ndim() < 2 ? reshape(x, {1, x.numel()})
                      : reshape(x, {x.shape()[0], x.numel() / x.shape()[0]});
}

OpRow row(OpId op, int tensors, int optional_from, Call call,
          std::function<Inputs(Rng&, DType, const Dims&)> inputs) {
  OpRow r;
  r.op = op;
  r.call = std::move(call);
  r.inputs = std::move(inputs);
  r.dtypes = floating_dtypes();
  r.tensors = tensors;
  r.optional_from = optional_from;
  return r;
}

/// The size of the last axis; a 0-d tensor gets one.
Dims last_axis(const Dims& shape) { return {shape.empty() ? 1 : shape.back()}; }
Tensor with_axis(const Tensor& x) { return x.ndim() == 0 ? reshape(x, {1}) : x; }

Inputs weighted(Rng& rng, DType dtype, const Dims& shape, int parameters) {
  Inputs in{like(rng, dtype, shape)};
  for (int k = 0; k < parameters; ++k) in.push_back(like(rng, dtype, last_axis(shape)));
  return in;
}

// The backward ops are internal: they take the compute dtypes of their kernels.
OpRow internal(OpRow r) {
  r.dtypes = {DType::Float32, DType::Float64};
  return r;
}

NormAttrs last_axis_attrs(const Tensor& x) { return {x.ndim() - 1, 1e-5}; }

/// A batch of at least two values for each channel.
Tensor batch(const Tensor& x) {
  return x.ndim() == 0   ? concat({reshape(x, {1, 1}), reshape(x * 2.0 + 1.0, {1, 1})}, 0)
         : x.ndim() == 1 ? reshape(x, {x.numel(), 1})
                         : x;
}
Dims channels(const Dims& shape) { return {shape.size() < 2 ? 1 : shape[1]}; }

Tensor classes_for(Rng& rng, const Dims& shape) {
  const std::int64_t rows = shape.size() < 2 ? 1 : shape[0];
  std::int64_t n = 1;
  for (const std::int64_t size : shape) n *= size;
  const std::int64_t count = rows == 0 ? 1 : n / rows;
  if (count == 0) return full({rows}, -100);
  return sample_indices(rng, {rows}, 0, count);
}

// The time is quadratic in the length: only the first rows of a longer input are used.
constexpr std::int64_t kMostQueries = 150;

/// Keys and values for the queries of a matrix: a few more rows.
Inputs attention_inputs(Rng& rng, DType dtype, const Dims& shape) {
  std::int64_t n = 1;
  for (const std::int64_t size : shape) n *= size;
  const std::int64_t rows = shape.size() < 2 ? 1 : shape[0];
  const std::int64_t depth = rows == 0 ? 3 : n / rows;
  const std::int64_t keys = std::min(rows, kMostQueries) + 2;
  return {sample(rng, dtype, shape, -1, 1), sample(rng, dtype, {keys, depth}, -1, 1),
          sample(rng, dtype, {keys, 3}, -1, 1)};
}
Tensor queries(const Tensor& x) {
  const Tensor rows = x.ndim() == 2 && x.shape()[0] == 0 ? reshape(x, {0, 3}) : as_matrix(x);
  return narrow(rows, 0, 0, std::min(rows.shape()[0], kMostQueries));
}

}  // namespace

std::vector<OpRow> fused_rows() {
  std::vector<OpRow> r;
  r.push_back(row(
      OpId::layer_norm, 3, 1,
      // With only two elements the result would jump from -1 to 1 where they are equal, unless eps
      // is large.
      [](const Inputs& in) {
        const Tensor x = with_axis(in[0]);
        return std::vector<Tensor>{layer_norm(x, last_axis(x.shape()), in[1], in[2], 0.2)};
      },
      [](Rng& rng, DType d, const Dims& s) { return weighted(rng, d, s, 2); }));
  r.push_back(internal(row(
      OpId::layer_norm_backward, 2, 2,
      [](const Inputs& in) {
        const Tensor x = with_axis(in[0]);
        NormAttrs attrs = last_axis_attrs(x);
        const Tensor stats = run_many(OpId::layer_norm, {&x, &in[1]}, attrs)[1];
        attrs.wanted = kWantX | kWantWeight | kWantBias;
        return run_many(OpId::layer_norm_backward, {&x, &x, &stats, &in[1]}, attrs);
      },
      [](Rng& rng, DType d, const Dims& s) { return weighted(rng, d, s, 1); })));
  r.push_back(row(
      OpId::rms_norm, 2, 1,
      [](const Inputs& in) {
        const Tensor x = with_axis(in[0]);
        return std::vector<Tensor>{rms_norm(x, last_axis(x.shape()), in[1], 1e-3)};
      },
      [](Rng& rng, DType d, const Dims& s) { return weighted(rng, d, s, 1); }));
  r.push_back(internal(row(
      OpId::rms_norm_backward, 2, 2,
      [](const Inputs& in) {
        const Tensor x = with_axis(in[0]);
        NormAttrs attrs = last_axis_attrs(x);
        const Tensor stats = run_many(OpId::rms_norm, {&x, &in[1]}, attrs)[1];
        attrs.wanted = kWantX | kWantWeight;
        return run_many(OpId::rms_norm_backward, {&x, &x, &stats, &in[1]}, attrs);
      },
      [](Rng& rng, DType d, const Dims& s) { return weighted(rng, d, s, 1); })));
  r.push_back(row(
      OpId::batch_norm, 3, 1,
      [](const Inputs& in) {
        return std::vector<Tensor>{batch_norm(batch(in[0]), {}, {}, in[1], in[2], true)};
      },
      [](Rng& rng, DType d, const Dims& s) {
        return Inputs{like(rng, d, s), like(rng, d, channels(s)), like(rng, d, channels(s))};
      }));
  r.push_back(internal(row(
      OpId::batch_norm_backward, 2, 2,
      [](const Inputs& in) {
        const Tensor x = batch(in[0]);
        const BatchNormAttrs attrs{1e-5, true, kWantX | kWantWeight | kWantBias};
        const Tensor stats = run_many(OpId::batch_norm, {&x, &in[1], &in[1]}, attrs)[1];
        return run_many(OpId::batch_norm_backward, {&x, &x, &stats, &in[1]}, attrs);
      },
      [](Rng& rng, DType d, const Dims& s) {
        return Inputs{like(rng, d, s), like(rng, d, channels(s))};
      })));
  r.push_back(row(
      OpId::cross_entropy, 2, 2,
      [](const Inputs& in) {
        const Tensor x = as_matrix(in[0]);
        return std::vector<Tensor>{
            cross_entropy(x, in[1], {.reduction = Reduction::Sum}),
            cross_entropy(x, in[1], {.label_smoothing = 0.1, .reduction = Reduction::None})};
      },
      [](Rng& rng, DType d, const Dims& s) {
        return Inputs{like(rng, d, s), classes_for(rng, s)};
      }));
  r.push_back(internal(row(
      OpId::cross_entropy_backward, 2, 2,
      [](const Inputs& in) {
        const Tensor x = as_matrix(in[0]);
        const CrossEntropyAttrs attrs{LossReduction::Sum};
        const Tensor g = ones({}, x.dtype());
        const Tensor stats = run_many(OpId::cross_entropy, {&x, &in[1]}, attrs)[1];
        return run_many(OpId::cross_entropy_backward, {&g, &x, &in[1], &stats}, attrs);
      },
      [](Rng& rng, DType d, const Dims& s) {
        return Inputs{like(rng, d, s), classes_for(rng, s)};
      })));
  r.push_back(row(
      OpId::attention, 3, 3,
      [](const Inputs& in) {
        const Tensor q = queries(in[0]);
        return std::vector<Tensor>{
            scaled_dot_product_attention(q, in[1], in[2]),
            scaled_dot_product_attention(q, in[1], in[2], {.causal = true, .scale = 0.7})};
      },
      attention_inputs));
  r.back().magnitude = 1;
  r.push_back(internal(row(
      OpId::attention_backward, 3, 3,
      [](const Inputs& in) {
        const Tensor q = queries(in[0]);
        const AttentionAttrs attrs{0.5};
        const std::vector<Tensor> made = run_many(OpId::attention, {&q, &in[1], &in[2]}, attrs);
        const Tensor g = ones_like(made[0]);
        return run_many(OpId::attention_backward, {&g, &q, &in[1], &in[2], &made[0], &made[1]},
                        attrs);
      },
      attention_inputs)));
  r.back().magnitude = 1;
  r.push_back(internal(row(
      OpId::optimizer_step, 2, 2,
      [](const Inputs& in) {
        const std::vector<Tensor> kept{clone(in[0].detach()), abs(in[1].detach())};
        const Tensor* gradient = &in[1];
        StepNumbers numbers;
        numbers.lr = 0.1;
        numbers.beta1 = numbers.beta2 = 0.5;
        numbers.rate1 = numbers.rate2 = 0.5;
        numbers.eps = 1e-3;
        const StepAttrs attrs{StepRule::RmsProp, 3, numbers};
        run_in_place(
            {OpId::optimizer_step, {&gradient, 1}, attrs, nullptr, CallKind::Update, kept});
        return kept;
      },
      [](Rng& rng, DType d, const Dims& s) {
        return Inputs{like(rng, d, s), like(rng, d, s)};
      })));
  r.push_back(internal(row(
      OpId::square_sum_of_all, 2, 2,
      [](const Inputs& in) {
        return run_many(OpId::square_sum_of_all, {&in[0], &in[1]});
      },
      [](Rng& rng, DType d, const Dims& s) {
        return Inputs{like(rng, d, s), like(rng, d, s)};
      })));
  return r;
}

}  // namespace baregrad::op_table

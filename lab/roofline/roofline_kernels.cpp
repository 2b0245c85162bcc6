// One function per kind of kernel; the list is at the end.
#include "lab/roofline/roofline_kernels.h"

#include <memory>

#include "baregrad/autograd.h"
#include "baregrad/ops.h"
#include "baregrad/ops_conv.h"
#include "baregrad/ops_fused.h"
#include "baregrad/optim.h"
#include "bench/harness.h"

namespace baregrad::lab {
namespace {

using bench::keep;

Tensor draw(const Dims& shape, std::uint64_t seed) {
  Generator generator(seed);
  return normal(shape, 0, 1, DType::Float32, &generator);
}
Tensor leaf(const Tensor& t) { return t.detach().requires_grad_(); }

constexpr std::int64_t kInCache = 32 << 10;  // 128 KiB per array: several fit in L2
/// The size of an array which, with a second one, is far larger than typical caches.
std::int64_t beyond(bool quick) { return quick ? 8 << 20 : 16 << 20; }
std::int64_t rows_beyond(bool quick) { return beyond(quick) / 1024; }

template <Tensor (*kOp)(const Tensor&)>
RooflineKernel unary(const char* name, std::int64_t n, std::uint64_t seed) {
  const Tensor x = draw({n}, seed);
  return {name, to_string(x.shape()), [x] { keep(kOp(x)); }};
}
template <Tensor (*kOp)(const Tensor&)>
RooflineKernel in_cache(const char* name, std::uint64_t seed) {
  return unary<kOp>(name, kInCache, seed);
}
template <Tensor (*kOp)(const Tensor&)>
RooflineKernel in_memory(const char* name, bool quick, std::uint64_t seed) {
  return unary<kOp>(name, beyond(quick), seed);
}

Tensor add_up(const Tensor& x) { return sum(x); }

RooflineKernel add_of(std::int64_t n, std::uint64_t seed) {
  const Tensor x = draw({n}, seed);
  const Tensor y = draw({n}, seed + 1);
  return {"add", to_string(x.shape()), [x, y] { keep(x + y); }};
}

RooflineKernel softmax_of(std::int64_t rows, std::uint64_t seed) {
  const Tensor x = draw({rows, 1024}, seed);
  return {"softmax", to_string(x.shape()), [x] { keep(softmax(x)); }};
}

RooflineKernel layer_norm_of(std::int64_t rows, std::uint64_t seed) {
  const Tensor x = draw({rows, 1024}, seed);
  const Tensor weight = draw({1024}, seed + 1);
  const Tensor bias = draw({1024}, seed + 2);
  return {"layer_norm", to_string(x.shape()), [=] { keep(layer_norm(x, {1024}, weight, bias)); }};
}

RooflineKernel layer_norm_with_backward(std::int64_t rows, std::uint64_t seed) {
  const Tensor x = leaf(draw({rows, 1024}, seed));
  const Tensor weight = leaf(draw({1024}, seed + 1));
  const Tensor bias = leaf(draw({1024}, seed + 2));
  const Tensor g = draw({rows, 1024}, seed + 3);
  return {"layer_norm, forward and backward", to_string(x.shape()), [=] {
            keep(autograd::grad({layer_norm(x, {1024}, weight, bias)}, {x, weight, bias}, {g}));
          }};
}

Tensor positions(std::int64_t end, const Dims& shape, std::uint64_t seed) {
  Generator generator(seed);
  return randint(0, end, shape, DType::Int64, &generator);
}

RooflineKernel cross_entropy_of(std::int64_t rows, std::uint64_t seed) {
  const Tensor x = draw({rows, 1024}, seed);
  const Tensor target = positions(1024, {rows}, seed + 1);
  return {"cross_entropy", to_string(x.shape()), [=] { keep(cross_entropy(x, target)); }};
}

RooflineKernel cross_entropy_with_backward(std::int64_t rows, std::uint64_t seed) {
  const Tensor x = leaf(draw({rows, 1024}, seed));
  const Tensor target = positions(1024, {rows}, seed + 1);
  return {"cross_entropy, forward and backward", to_string(x.shape()),
          [=] { keep(autograd::grad({cross_entropy(x, target)}, {x})); }};
}

/// The profiler counts none of its operations. Counted here: two products of tokens x tokens x
/// width per head, and one operation for each weight of the softmax between them. The weights are
/// never in memory.
RooflineKernel attention_of(std::int64_t heads, std::int64_t tokens, std::uint64_t seed) {
  constexpr std::int64_t kWidth = 64;
  const Tensor q = draw({heads, tokens, kWidth}, seed);
  const Tensor k = draw({heads, tokens, kWidth}, seed + 1);
  const Tensor v = draw({heads, tokens, kWidth}, seed + 2);
  const auto weights = static_cast<std::uint64_t>(heads * tokens * tokens);
  return {"attention", to_string(q.shape()), [=] { keep(scaled_dot_product_attention(q, k, v)); },
          profile::Work{weights * (4 * kWidth + 1), 4 * q.nbytes()}};
}

RooflineKernel cumulative_sum_of(std::int64_t rows, std::uint64_t seed) {
  const Tensor x = draw({rows, 1024}, seed);
  return {"cumulative_sum", to_string(x.shape()), [x] { keep(cumulative_sum(x, 1)); }};
}

RooflineKernel matmul_of(std::int64_t m, std::int64_t n, std::int64_t k, std::uint64_t seed) {
  const Tensor a = draw({m, k}, seed);
  const Tensor b = draw({k, n}, seed + 1);
  return {"matmul", to_string(a.shape()) + " " + to_string(b.shape()), [=] { keep(matmul(a, b)); }};
}

RooflineKernel linear_of(std::int64_t batch, std::int64_t features, std::uint64_t seed) {
  const Tensor x = leaf(draw({batch, features}, seed));
  const Tensor weight = leaf(draw({features, features}, seed + 1));
  const Tensor bias = leaf(draw({features}, seed + 2));
  const Tensor g = draw({batch, features}, seed + 3);
  return {"linear, forward and backward", to_string(x.shape()) + " " + to_string(weight.shape()),
          [=] {
            keep(autograd::grad({linear(x, weight, bias)}, {x, weight, bias}, {g}));
          }};
}

constexpr std::int64_t kChannels = 64;
constexpr std::int64_t kSide = 28;
constexpr std::int64_t kWindow = 3;

Tensor images(std::int64_t batch, std::uint64_t seed) {
  return draw({batch, kChannels, kSide, kSide}, seed);
}
Tensor filters(std::uint64_t seed) { return draw({kChannels, kChannels, kWindow, kWindow}, seed); }
/// Padding that keeps the size of the images.
ConvOptions same_size() { return {{1, 1}, {1, 1}}; }

RooflineKernel conv_of(std::int64_t batch, std::uint64_t seed) {
  const Tensor x = images(batch, seed);
  const Tensor w = filters(seed + 1);
  return {"conv2d", to_string(x.shape()) + " " + to_string(w.shape()),
          [=] { keep(conv2d(x, w, Tensor(), same_size())); }};
}

RooflineKernel conv_input_of(std::int64_t batch, std::uint64_t seed) {
  const Tensor g = images(batch, seed);
  const Tensor w = filters(seed + 1);
  return {"conv2d_input", to_string(g.shape()) + " " + to_string(w.shape()), [=] {
            keep(conv2d_input(g, w, {kSide, kSide}, same_size()));
          }};
}

RooflineKernel conv_weight_of(std::int64_t batch, std::uint64_t seed) {
  const Tensor x = images(batch, seed);
  const Tensor g = images(batch, seed + 1);
  return {"conv2d_weight", to_string(x.shape()) + " " + to_string(g.shape()), [=] {
            keep(conv2d_weight(x, g, {kWindow, kWindow}, same_size()));
          }};
}

// ---- Ops that move numbers without arithmetic ---------------------------------------------------

RooflineKernel copy_of(std::int64_t n, std::uint64_t seed) {
  const Tensor x = draw({n}, seed);
  return {"clone", to_string(x.shape()), [x] { keep(clone(x)); }};
}

RooflineKernel transposed_copy_of(std::int64_t side, std::uint64_t seed) {
  const Tensor x = draw({side, side}, seed);
  return {"contiguous, of a transpose", to_string(x.shape()),
          [x] { keep(contiguous(matrix_transpose(x))); }};
}

RooflineKernel cast_of(std::int64_t n, std::uint64_t seed) {
  const Tensor x = draw({n}, seed);
  return {"astype, to bfloat16", to_string(x.shape()), [x] { keep(astype(x, DType::BFloat16)); }};
}

/// Every row once, so that the bytes are those of the tensors.
RooflineKernel select_rows(std::int64_t rows, std::uint64_t seed) {
  const Tensor x = draw({rows, 1024}, seed);
  Generator generator(seed + 1);
  const Tensor order = randperm(rows, DType::Int64, &generator);
  return {"index_select, of rows", to_string(x.shape()), [=] { keep(index_select(x, 0, order)); }};
}

RooflineKernel gather_of(std::int64_t rows, std::uint64_t seed) {
  const Tensor x = draw({rows, 1024}, seed);
  const Tensor from = positions(1024, {rows, 1024}, seed + 1);
  return {"gather", to_string(x.shape()), [=] { keep(gather(x, 1, from)); }};
}

RooflineKernel scatter_add_of(std::int64_t rows, std::uint64_t seed) {
  const Tensor x = draw({rows, 1024}, seed);
  const Tensor source = draw({rows, 1024}, seed + 1);
  const Tensor to = positions(1024, {rows, 1024}, seed + 2);
  return {"scatter_add", to_string(x.shape()), [=] { keep(scatter_add(x, 1, to, source)); }};
}

RooflineKernel sort_of(std::int64_t rows, std::uint64_t seed) {
  const Tensor x = draw({rows, 1024}, seed);
  return {"sort", to_string(x.shape()), [x] { keep(sort(x)); }};
}

// ---- Work that is not an op ---------------------------------------------------------------------

/// A step is not an op, so the profiler does not count it. Per parameter: the gradient is read, the
/// parameter and two means are read and written; 1 operation for the decay, 3 and 4 for the means,
/// 6 for the update.
RooflineKernel adamw_of(std::int64_t n, std::uint64_t seed) {
  const Tensor parameter = leaf(draw({n}, seed));
  parameter.set_grad(draw({n}, seed + 1));
  const auto optimizer = std::make_shared<optim::AdamW>(optim::Tensors{parameter});
  optimizer->step();  // the first step allocates the state
  const auto count = static_cast<std::uint64_t>(n);
  return {"AdamW step", to_string(parameter.shape()), [=] { optimizer->step(); },
          profile::Work{14 * count, 7 * 4 * count}, /*in_place=*/true};
}

}  // namespace

const std::vector<RooflineRow>& roofline_rows() {
  using Seed = std::uint64_t;
  static const std::vector<RooflineRow> rows = {
      {"add, small", [](bool, Seed seed) { return add_of(kInCache, seed); }},
      {"add", [](bool quick, Seed seed) { return add_of(beyond(quick), seed); }},
      {"relu, small", [](bool, Seed seed) { return in_cache<relu>("relu", seed); }},
      {"relu", [](bool quick, Seed seed) { return in_memory<relu>("relu", quick, seed); }},
      {"exp, small", [](bool, Seed seed) { return in_cache<exp>("exp", seed); }},
      {"exp", [](bool quick, Seed seed) { return in_memory<exp>("exp", quick, seed); }},
      {"gelu, small", [](bool, Seed seed) { return in_cache<gelu>("gelu", seed); }},
      {"gelu", [](bool quick, Seed seed) { return in_memory<gelu>("gelu", quick, seed); }},
      {"sum, small", [](bool, Seed seed) { return in_cache<add_up>("sum", seed); }},
      {"sum", [](bool quick, Seed seed) { return unary<add_up>("sum", 2 * beyond(quick), seed); }},
      {"softmax, small", [](bool, Seed seed) { return softmax_of(kInCache / 1024, seed); }},
      {"softmax", [](bool quick, Seed seed) { return softmax_of(rows_beyond(quick), seed); }},
      {"layer_norm, small", [](bool, Seed seed) { return layer_norm_of(kInCache / 1024, seed); }},
      {"layer_norm", [](bool quick, Seed seed) { return layer_norm_of(rows_beyond(quick), seed); }},
      {"layer_norm, backward",
       [](bool quick, Seed seed) { return layer_norm_with_backward(rows_beyond(quick), seed); }},
      {"cross_entropy",
       [](bool quick, Seed seed) { return cross_entropy_of(2 * rows_beyond(quick), seed); }},
      {"cross_entropy, backward",
       [](bool quick, Seed seed) { return cross_entropy_with_backward(rows_beyond(quick), seed); }},
      {"cumulative_sum",
       [](bool quick, Seed seed) { return cumulative_sum_of(rows_beyond(quick), seed); }},
      {"AdamW", [](bool quick, Seed seed) { return adamw_of(beyond(quick), seed); }},
      {"matmul 64", [](bool, Seed seed) { return matmul_of(64, 64, 64, seed); }},
      {"matmul 512", [](bool, Seed seed) { return matmul_of(512, 512, 512, seed); }},
      {"matmul 1024", [](bool, Seed seed) { return matmul_of(1024, 1024, 1024, seed); }},
      {"matmul, one row", [](bool, Seed seed) { return matmul_of(1, 4096, 4096, seed); }},
      {"matmul, 8 rows", [](bool, Seed seed) { return matmul_of(8, 4096, 4096, seed); }},
      {"linear", [](bool quick, Seed seed) { return linear_of(quick ? 64 : 256, 512, seed); }},
      {"attention", [](bool quick, Seed seed) { return attention_of(8, quick ? 128 : 512, seed); }},
      {"conv2d", [](bool quick, Seed seed) { return conv_of(quick ? 2 : 8, seed); }},
      {"conv2d_input", [](bool quick, Seed seed) { return conv_input_of(quick ? 2 : 8, seed); }},
      {"conv2d_weight", [](bool quick, Seed seed) { return conv_weight_of(quick ? 2 : 8, seed); }},
      {"copy, small", [](bool, Seed seed) { return copy_of(kInCache, seed); }},
      {"copy", [](bool quick, Seed seed) { return copy_of(beyond(quick), seed); }},
      {"transposed copy",
       [](bool quick, Seed seed) { return transposed_copy_of(quick ? 3000 : 4000, seed); }},
      {"cast", [](bool quick, Seed seed) { return cast_of(beyond(quick), seed); }},
      {"select rows", [](bool quick, Seed seed) { return select_rows(rows_beyond(quick), seed); }},
      {"gather", [](bool quick, Seed seed) { return gather_of(rows_beyond(quick) / 2, seed); }},
      {"scatter_add",
       [](bool quick, Seed seed) { return scatter_add_of(rows_beyond(quick) / 2, seed); }},
      {"sort", [](bool quick, Seed seed) { return sort_of(quick ? 256 : 1024, seed); }},
  };
  return rows;
}

}  // namespace baregrad::lab

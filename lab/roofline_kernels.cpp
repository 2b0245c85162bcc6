// One function per kind of kernel; the list stands at the end.
#include "lab/roofline_kernels.h"

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

constexpr std::int64_t kInCache = 32 << 10;  // 128 KiB an array: in L2, with those beside it
/// Elements of an array that, with one as large beside it, is far more than usual caches hold.
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

RooflineKernel cross_entropy_of(std::int64_t rows, std::uint64_t seed) {
  const Tensor x = draw({rows, 1024}, seed);
  Generator generator(seed + 1);
  const Tensor target = randint(0, 1024, {rows}, DType::Int64, &generator);
  return {"cross_entropy", to_string(x.shape()), [=] { keep(cross_entropy(x, target)); }};
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

RooflineKernel conv_of(std::int64_t batch, std::uint64_t seed) {
  const Tensor x = draw({batch, 64, 28, 28}, seed);
  const Tensor filters = draw({64, 64, 3, 3}, seed + 1);
  return {"conv2d", to_string(x.shape()) + " " + to_string(filters.shape()), [=] {
            keep(conv2d(x, filters, Tensor(), {{1, 1}, {1, 1}}));
          }};
}

/// A step is no op, so the profiler does not see it. Per parameter: the gradient read, parameter
/// and two means read and written; 1 operation to shrink, 3 and 4 for the means, 6 for the update.
RooflineKernel adamw_of(std::int64_t n, std::uint64_t seed) {
  const Tensor parameter = leaf(draw({n}, seed));
  parameter.set_grad(draw({n}, seed + 1));
  const auto optimizer = std::make_shared<optim::AdamW>(optim::Tensors{parameter});
  optimizer->step();  // the first makes what it keeps
  const auto count = static_cast<std::uint64_t>(n);
  return {"AdamW step", to_string(parameter.shape()), [=] { optimizer->step(); },
          profile::Work{14 * count, 7 * 4 * count}};
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
      {"cross_entropy",
       [](bool quick, Seed seed) { return cross_entropy_of(2 * rows_beyond(quick), seed); }},
      {"AdamW", [](bool quick, Seed seed) { return adamw_of(beyond(quick), seed); }},
      {"matmul 64", [](bool, Seed seed) { return matmul_of(64, 64, 64, seed); }},
      {"matmul 512", [](bool, Seed seed) { return matmul_of(512, 512, 512, seed); }},
      {"matmul 1024", [](bool, Seed seed) { return matmul_of(1024, 1024, 1024, seed); }},
      {"matmul, one row", [](bool, Seed seed) { return matmul_of(1, 4096, 4096, seed); }},
      {"matmul, 8 rows", [](bool, Seed seed) { return matmul_of(8, 4096, 4096, seed); }},
      {"linear", [](bool quick, Seed seed) { return linear_of(quick ? 64 : 256, 512, seed); }},
      {"conv2d", [](bool quick, Seed seed) { return conv_of(quick ? 2 : 8, seed); }},
  };
  return rows;
}

}  // namespace baregrad::lab

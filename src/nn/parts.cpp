// Splits of a tensor whose gradients are joined in one pass.
#include "nn/parts.h"

#include "baregrad/autograd.h"
#include "baregrad/ops.h"

namespace baregrad::nn {

namespace {

using autograd::Context;
using autograd::Tensors;

struct Steps : autograd::Function<Steps> {
  static constexpr const char* kName = "unstack";
  static Tensors forward(Context&, const Tensor& x) { return unstack(x, 0); }
  static Tensors backward(Context&, const Tensors& g) { return {stack(g, 0)}; }
};

struct Parts : autograd::Function<Parts> {
  static constexpr const char* kName = "chunk";
  static Tensors forward(Context&, const Tensor& x, std::int64_t count) {
    return chunk(x, count, -1);
  }
  static Tensors backward(Context&, const Tensors& g) { return {concat(g, -1)}; }
};

}  // namespace

std::vector<Tensor> steps_of(const Tensor& x) { return Steps::apply(x); }
std::vector<Tensor> parts_of(const Tensor& x, std::int64_t count) { return Parts::apply(x, count); }

}  // namespace baregrad::nn

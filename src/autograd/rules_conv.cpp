// Gradient rules of convolutions and pooling. conv2d, conv2d_input and conv2d_weight are each
// linear in both tensors, and each one's gradients are the other two.
#include "autograd/rule_functions.h"
#include "baregrad/ops.h"
#include "baregrad/ops_conv.h"

namespace baregrad::autograd::rules {

namespace {

ConvOptions conv_options(const Backward& b) {
  const auto& a = b.attrs<ConvAttrs>();
  return {a.stride, a.padding, a.dilation, a.groups};
}

PoolOptions pool_options(const Backward& b) {
  const auto& a = b.attrs<PoolAttrs>();
  return {a.kernel, a.stride, a.padding, a.ceil_mode, a.count_include_pad};
}

/// Height and width.
Dims area(const Dims& shape) { return {shape[2], shape[3]}; }

}  // namespace

void conv2d(Backward& b) {
  const ConvOptions options = conv_options(b);
  if (b.needs(0)) {
    b.give(0, baregrad::conv2d_input(b.grad(), b.input(1), area(b.shape(0)), options));
  }
  if (b.needs(1)) {
    b.give(1, baregrad::conv2d_weight(b.input(0), b.grad(), area(b.shape(1)), options));
  }
  if (b.inputs() > 2 && b.needs(2)) b.give(2, baregrad::sum(b.grad(), {0, 2, 3}));
}

// inputs: the result's gradient, the weight.
void conv2d_input(Backward& b) {
  const ConvOptions options = conv_options(b);
  if (b.needs(0)) b.give(0, baregrad::conv2d(b.grad(), b.input(1), Tensor(), options));
  if (b.needs(1)) {
    b.give(1, baregrad::conv2d_weight(b.grad(), b.input(0), area(b.shape(1)), options));
  }
}

// inputs: the images, the result's gradient.
void conv2d_weight(Backward& b) {
  const ConvOptions options = conv_options(b);
  if (b.needs(0)) {
    b.give(0, baregrad::conv2d_input(b.input(1), b.grad(), area(b.shape(0)), options));
  }
  if (b.needs(1)) b.give(1, baregrad::conv2d(b.input(0), b.grad(), Tensor(), options));
}

// Each result came from where its position says.
void max_pool2d(Backward& b) {
  const Dims shape = b.shape(0);
  const Dims out = b.output_shape();
  const std::int64_t planes = shape[0] * shape[1];
  const Tensor start = zeros_beside(b.grad(), {planes, shape[2] * shape[3]});
  const Dims lines = {planes, out[2] * out[3]};
  const Tensor at = baregrad::reshape(b.output(1), lines);
  const Tensor sums = baregrad::scatter_add(start, 1, at, baregrad::reshape(b.grad(), lines));
  b.give(0, baregrad::reshape(sums, shape));
}

void avg_pool2d(Backward& b) {
  b.give(0, baregrad::avg_pool2d_backward(b.grad(), area(b.shape(0)), pool_options(b)));
}

void avg_pool2d_backward(Backward& b) {
  b.give(0, baregrad::avg_pool2d(b.grad(), pool_options(b)));
}

}  // namespace baregrad::autograd::rules

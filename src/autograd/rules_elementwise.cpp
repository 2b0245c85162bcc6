// Gradient rules of elementwise ops. At ties and kinks they choose as PyTorch does.
#include <numbers>

#include "autograd/rule_functions.h"
#include "baregrad/ops.h"

namespace baregrad::autograd::rules {

namespace {
constexpr double kInvSqrt2 = 1 / std::numbers::sqrt2;
constexpr double kInvSqrt2Pi = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}  // namespace

// The branch not taken stays finite: its derivative times zero must not become NaN.
void elu(Backward& b) {
  const Tensor x = b.input(0);
  b.give(0, baregrad::where(
                x > 0, b.grad(),
                b.grad() * (b.attrs<NumbersAttrs>().values[0] * exp(baregrad::minimum(x, 0)))));
}

void gelu(Backward& b) {
  const Tensor x = b.input(0);
  const Tensor below = (erf(x * kInvSqrt2) + 1.0) * 0.5;
  const Tensor density = exp(square(x) * -0.5) * kInvSqrt2Pi;
  b.give(0, b.grad() * (below + x * density));
}

void gelu_tanh(Backward& b) {
  constexpr double kCubic = 0.044715;
  constexpr double kScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const Tensor x = b.input(0);
  const Tensor t = tanh((x + x * square(x) * kCubic) * kScale);
  const Tensor inner = (square(x) * (3 * kCubic) + 1.0) * kScale;
  b.give(0, b.grad() * ((t + 1.0) * 0.5 + x * (1.0 - square(t)) * inner * 0.5));
}

void silu(Backward& b) {
  const Tensor x = b.input(0);
  const Tensor s = sigmoid(x);
  b.give(0, b.grad() * (s * (x * (1.0 - s) + 1.0)));
}

void mish(Backward& b) {
  const Tensor x = b.input(0);
  const Tensor t = tanh(baregrad::softplus(x));
  b.give(0, b.grad() * (t + x * sigmoid(x) * (1.0 - square(t))));
}

void softplus(Backward& b) {
  const Tensor scaled = b.input(0) * b.attrs<NumbersAttrs>().values[0];
  b.give(0, baregrad::where(scaled > b.attrs<NumbersAttrs>().values[1], b.grad(),
                            b.grad() * sigmoid(scaled)));
}

void hardswish(Backward& b) {
  const Tensor x = b.input(0);
  const Tensor slope = x * (1.0 / 3.0) + 0.5;
  b.give(0, baregrad::where(x <= -3.0, 0.0, baregrad::where(x < 3.0, b.grad() * slope, b.grad())));
}

void divide(Backward& b) {
  const Tensor y = b.input(1);
  if (b.needs(0)) b.give(0, b.grad() / y);
  if (b.needs(1)) b.give(1, negative(b.grad() * (b.output() / y)));
}

void remainder(Backward& b) {
  b.give(0, b.grad());
  // The quotient that the remainder was made with, which x / y may be rounded up from.
  if (b.needs(1)) b.give(1, negative(b.grad() * floor_divide(b.input(0), b.input(1))));
}

void pow(Backward& b) {
  const Tensor x = b.input(0);
  const Tensor e = b.input(1);
  if (b.needs(0)) {
    b.give(0, baregrad::where(e == 0, 0.0, b.grad() * (e * baregrad::pow(x, e - 1.0))));
  }
  if (b.needs(1)) {
    const Tensor flat = logical_and(x == 0, e >= 0);
    const Tensor logarithm = log(baregrad::where(flat, 1.0, x));
    b.give(1, baregrad::where(flat, 0.0, b.grad() * (b.output() * logarithm)));
  }
}

namespace {

/// The greater (or lesser) gets the gradient, equals share it.
void extreme_of_two(Backward& b, const Tensor& loses_x, const Tensor& loses_y) {
  const Tensor& g = b.grad();
  const Tensor shared = baregrad::where(b.input(0) == b.input(1), g * 0.5, g);
  if (b.needs(0)) b.give(0, baregrad::where(loses_x, 0.0, shared));
  if (b.needs(1)) b.give(1, baregrad::where(loses_y, 0.0, shared));
}

/// clip with one bound: x keeps the gradient on the bound itself; NaN gets none.
bool is_bound(const Backward& b) { return b.attrs_ref().or_default<TiesAttrs>().to_first; }
void bounded(Backward& b, const Tensor& inside, const Tensor& outside) {
  if (b.needs(0)) b.give(0, baregrad::where(inside, b.grad(), 0.0));
  if (b.needs(1)) b.give(1, baregrad::where(outside, b.grad(), 0.0));
}

}  // namespace

void maximum(Backward& b) {
  const Tensor x = b.input(0);
  const Tensor y = b.input(1);
  if (is_bound(b)) return bounded(b, x >= y, x < y);
  extreme_of_two(b, x<y, x> y);
}

void minimum(Backward& b) {
  const Tensor x = b.input(0);
  const Tensor y = b.input(1);
  if (is_bound(b)) return bounded(b, x <= y, x > y);
  extreme_of_two(b, x > y, x < y);
}

void atan2(Backward& b) {
  const Tensor y = b.input(0);
  const Tensor x = b.input(1);
  // At the origin the angle has no slope; it is taken as zero.
  const Tensor radius = square(x) + square(y);
  const Tensor origin = radius == 0;
  const Tensor over = baregrad::where(origin, 0.0, b.grad() / baregrad::where(origin, 1.0, radius));
  if (b.needs(0)) b.give(0, over * x);
  if (b.needs(1)) b.give(1, negative(over * y));
}

void hypot(Backward& b) {
  for (const int k : {0, 1}) {
    if (b.needs(k)) b.give(k, b.grad() * (b.input(k) / b.output()));
  }
}

void copysign(Backward& b) {
  if (b.needs(0)) {
    const Tensor x = b.input(0);
    const Tensor turned = b.output() / baregrad::where(x == 0, 1.0, x);
    b.give(0, b.grad() * baregrad::where(x == 0, 0.0, turned));
  }
  if (b.needs(1)) b.give(1, zeros_like(b.grad()));
}

void logaddexp(Backward& b) {
  const Tensor lead = b.input(0) - b.input(1);
  if (b.needs(0)) b.give(0, b.grad() * sigmoid(lead));
  if (b.needs(1)) b.give(1, b.grad() * sigmoid(negative(lead)));
}

// Of the gradients of activations: for second derivatives. relu's slope is constant on both sides.
void relu_backward(Backward& b) {
  if (b.needs(0)) b.give(0, baregrad::relu_backward(b.grad(), b.input(1)));
  if (b.needs(1)) b.give(1, zeros_like(b.grad()));
}

void tanh_backward(Backward& b) {
  const Tensor y = b.input(1);
  if (b.needs(0)) b.give(0, baregrad::tanh_backward(b.grad(), y));
  if (b.needs(1)) b.give(1, b.grad() * b.input(0) * y * -2.0);
}

void sigmoid_backward(Backward& b) {
  const Tensor y = b.input(1);
  if (b.needs(0)) b.give(0, baregrad::sigmoid_backward(b.grad(), y));
  if (b.needs(1)) b.give(1, b.grad() * b.input(0) * (1.0 - y * 2.0));
}

void where(Backward& b) {
  const Tensor condition = b.input(0);
  if (b.needs(1)) b.give(1, baregrad::where(condition, b.grad(), 0.0));
  if (b.needs(2)) b.give(2, baregrad::where(condition, 0.0, b.grad()));
}

void clip(Backward& b) {
  const Tensor x = b.input(0);
  const Tensor low = b.input(1);
  const Tensor high = b.input(2);
  const Tensor& g = b.grad();
  if (b.needs(0)) b.give(0, baregrad::where(logical_and(x >= low, x <= high), g, 0.0));
  if (b.needs(1)) b.give(1, baregrad::where(logical_and(low < high, x < low), g, 0.0));
  if (b.needs(2)) b.give(2, baregrad::where(logical_or(x > high, high < low), g, 0.0));
}

void lerp(Backward& b) {
  if (b.needs(0)) b.give(0, b.grad() * (1.0 - b.input(2)));
  if (b.needs(1)) b.give(1, b.grad() * b.input(2));
  if (b.needs(2)) b.give(2, b.grad() * (b.input(1) - b.input(0)));
}

void addcmul(Backward& b) {
  const double value = b.attrs<NumbersAttrs>().values[0];
  b.give(0, b.grad());
  if (b.needs(1)) b.give(1, b.grad() * b.input(2) * value);
  if (b.needs(2)) b.give(2, b.grad() * b.input(1) * value);
}

}  // namespace baregrad::autograd::rules

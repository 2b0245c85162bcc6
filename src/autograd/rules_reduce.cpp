// Gradient rules of reductions, scans and the softmax family.
#include <algorithm>
#include <cmath>

#include "autograd/rule_functions.h"
#include "baregrad/ops.h"
#include "ops/infer.h"

namespace baregrad::autograd::rules {

namespace {

/// A reduced tensor with its lost axes as axes of size 1.
Tensor with_axes(const Tensor& t, const Backward& b) {
  const Dims kept = infer_reduced_shape(b.shape(0), b.attrs<ReduceAttrs>().axes, true);
  return t.shape() == kept ? t : baregrad::reshape(t, kept);
}

/// How many elements one result was made of.
double reduced_count(const Backward& b) {
  const Dims shape = b.shape(0);
  double count = 1;
  for (int i = 0; i < shape.size(); ++i) {
    if (b.attrs<ReduceAttrs>().axes.has(i)) count *= static_cast<double>(shape[i]);
  }
  return count;
}

Axes axes_of(const Backward& b) {
  Dims axes;
  for (int i = 0; i < b.shape(0).size(); ++i) {
    if (b.attrs<ReduceAttrs>().axes.has(i)) axes.push_back(i);
  }
  return axes;
}

/// Nothing came in, so nothing goes back; a rule would make NaN of it further up.
bool gave_nothing(Backward& b) {
  const Dims shape = b.shape(0);
  if (std::find(shape.begin(), shape.end(), 0) == shape.end()) return false;
  b.give(0, zeros_beside(b.grad(), shape));
  return true;
}

/// A 0-d tensor is a line of one element.
Tensor as_line(const Tensor& t) { return t.ndim() == 0 ? baregrad::reshape(t, {1}) : t; }

/// The product of all others along the last axis, zeros or not: what stands before times what
/// stands behind.
Tensor product_of_others(const Tensor& x) {
  const std::int64_t n = x.shape().back();
  const int last = x.ndim() - 1;
  Dims one = x.shape();
  one.back() = 1;
  const Tensor start = ones_beside(x, one);
  const Tensor before =
      cumulative_prod(baregrad::concat({start, narrow(x, last, 0, n - 1)}, last), last);
  const Tensor behind = baregrad::flip(
      cumulative_prod(
          baregrad::concat({start, narrow(baregrad::flip(x, last), last, 0, n - 1)}, last), last),
      last);
  return before * behind;
}

Tensor reversed_sum(const Tensor& g, std::int64_t axis) {
  return baregrad::flip(baregrad::cumulative_sum(baregrad::flip(g, axis), axis), axis);
}

}  // namespace

void sum(Backward& b) { b.give(0, broadcast_to(with_axes(b.grad(), b), b.shape(0))); }

void mean(Backward& b) {
  if (gave_nothing(b)) return;
  b.give(0, broadcast_to(with_axes(b.grad() * (1.0 / reduced_count(b)), b), b.shape(0)));
}

// As a norm of order 0, which is floating: the gradient is zero, not missing.
void count_nonzero(Backward& b) {
  b.give(0, zeros(b.shape(0), b.grad().dtype(), b.grad().device()));
}

void sum_squares(Backward& b) { b.give(0, with_axes(b.grad() * 2.0, b) * b.input(0)); }

// At zero the norm has a corner; its gradient there is taken as zero.
void norm2(Backward& b) {
  const Tensor y = with_axes(b.output(), b);
  const Tensor corner = y == 0;
  const Tensor direction = b.input(0) / baregrad::where(corner, 1.0, y);
  b.give(0, with_axes(b.grad(), b) * baregrad::where(corner, 0.0, direction));
}

void prod(Backward& b) {
  const Tensor x = b.input(0);
  const Tensor g = with_axes(b.grad(), b);
  if (gave_nothing(b)) return;
  if (!any(x == 0).item<bool>()) {
    b.give(0, g * with_axes(b.output(), b) / x);
    return;
  }
  // The reduced axes as one last axis, and back.
  Dims order;
  Dims back(x.ndim(), 0);
  Dims lines;
  std::int64_t length = 1;
  for (const bool reduced : {false, true}) {
    for (int i = 0; i < x.ndim(); ++i) {
      if (b.attrs<ReduceAttrs>().axes.has(i) != reduced) continue;
      back[i] = order.size();
      order.push_back(i);
      if (reduced) {
        length *= x.shape()[i];
      } else {
        lines.push_back(x.shape()[i]);
      }
    }
  }
  lines.push_back(length);
  const Tensor moved = baregrad::permute_dims(x, order);
  const Tensor others = product_of_others(baregrad::reshape(moved, lines));
  b.give(0, g * baregrad::permute_dims(baregrad::reshape(others, moved.shape()), back));
}

// Equals share the gradient.
void extreme(Backward& b) {
  const Tensor x = b.input(0);
  const Tensor y = with_axes(b.output(), b);
  const Tensor hit = logical_or(x == y, logical_and(isnan(x), isnan(y)));
  const Tensor share =
      with_axes(b.grad(), b) / astype(count_nonzero(hit, axes_of(b), true), b.grad().dtype());
  b.give(0, baregrad::where(hit, share, 0.0));
}

void var(Backward& b) {
  const Tensor x = b.input(0);
  const double divisor = reduced_count(b) - b.attrs<ReduceAttrs>().correction;
  const Tensor centred = x - baregrad::mean(x, axes_of(b), true);
  b.give(0, with_axes(b.grad(), b) * (centred * (2.0 / divisor)));
}

// Where nothing varies, the gradient is taken as zero.
void std(Backward& b) {
  if (gave_nothing(b)) return;
  const Tensor x = b.input(0);
  const double divisor = reduced_count(b) - b.attrs<ReduceAttrs>().correction;
  const Tensor y = with_axes(b.output(), b);
  const Tensor flat = y == 0;
  const Tensor slope = with_axes(b.grad(), b) / (baregrad::where(flat, 1.0, y) * divisor);
  const Tensor centred = x - baregrad::mean(x, axes_of(b), true);
  b.give(0, baregrad::where(flat, 0.0, slope) * centred);
}

void cumulative_sum(Backward& b) {
  const Tensor g = as_line(b.grad());
  b.give(0, baregrad::reshape(reversed_sum(g, b.attrs<ScanAttrs>().axis), b.shape(0)));
}

void cumulative_prod(Backward& b) {
  const Tensor x = as_line(b.input(0));
  const Tensor g = as_line(b.grad());
  const int axis = b.attrs<ScanAttrs>().axis;
  if (!any(x == 0).item<bool>()) {
    const Tensor whole = reversed_sum(g * as_line(b.output()), axis) / x;
    b.give(0, baregrad::reshape(whole, b.shape(0)));
    return;
  }
  // With zeros: for each position, the products that it is a factor of, without it.
  const std::int64_t n = x.shape()[axis];
  std::vector<Tensor> parts;
  Dims one = x.shape();
  one[axis] = 1;
  Tensor before = ones_beside(x, one);
  for (std::int64_t i = 0; i < n; ++i) {
    const Tensor behind =
        baregrad::concat({ones_beside(x, one), narrow(x, axis, i + 1, n - i - 1)}, axis);
    const Tensor products = before * baregrad::cumulative_prod(behind, axis);
    parts.push_back(baregrad::sum(narrow(g, axis, i, n - i) * products, axis, true));
    before = before * narrow(x, axis, i, 1);
  }
  b.give(0, baregrad::reshape(baregrad::concat(parts, axis), b.shape(0)));
}

// The latest of equals is the one that stands.
void cumulative_max(Backward& b) {
  const Tensor x = as_line(b.input(0));
  const Tensor y = as_line(b.output());
  const Tensor g = as_line(b.grad());
  const int axis = b.attrs<ScanAttrs>().axis;
  if (x.numel() == 0) {
    b.give(0, zeros_beside(g, b.shape(0)));
    return;
  }
  Dims line(x.ndim(), 1);
  line[axis] = x.shape()[axis];
  const Tensor positions = baregrad::reshape(arange(x.shape()[axis], {}, x.device()), line);
  const Tensor stands = logical_or(x == y, isnan(x));
  const Tensor at = baregrad::cumulative_max(
      baregrad::where(stands, positions, baregrad::zeros_like(positions)), axis);
  b.give(0, baregrad::reshape(baregrad::scatter_add(zeros_like(g), axis, at, g), b.shape(0)));
}

void softmax(Backward& b) {
  const Tensor y = as_line(b.output());
  const Tensor gy = as_line(b.grad()) * y;
  const Tensor total = baregrad::sum(gy, b.attrs<SoftmaxAttrs>().axis, true);
  b.give(0, baregrad::reshape(gy - y * total, b.shape(0)));
}

void log_softmax(Backward& b) {
  const Tensor y = as_line(b.output());
  const Tensor g = as_line(b.grad());
  const Tensor total = baregrad::sum(g, b.attrs<SoftmaxAttrs>().axis, true);
  b.give(0, baregrad::reshape(g - exp(y) * total, b.shape(0)));
}

// The result keeps its axes. Where it is infinite there is no slope to share out: NaN, as in
// PyTorch.
void logsumexp(Backward& b) { b.give(0, b.grad() * exp(b.input(0) - b.output())); }

}  // namespace baregrad::autograd::rules

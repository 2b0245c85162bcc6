// Losses as functions.
#include "baregrad/nn/losses.h"

#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/message.h"
#include "core/number_text.h"
#include "core/rename.h"
#include "nn/check.h"
#include "ops/widened.h"

namespace baregrad::nn {

namespace {

using autograd::Context;
using autograd::Tensors;

Tensor reduced(const Tensor& each, Reduction reduction) {
  switch (reduction) {
    case Reduction::None:
      return each;
    case Reduction::Sum:
      return sum(each);
    case Reduction::Mean:
      break;
  }
  return mean(each);
}

void check_input(const Tensor& input, const char* who) {
  require_defined(input, "the input", who);
  if (!is_floating(input.dtype())) {
    throw DTypeError(message(who, ": the input must be floating, not ", describe(input)));
  }
}

void check_pair(const Tensor& input, const Tensor& target, const char* who) {
  check_input(input, who);
  require_defined(target, "the target", who);
  if (!(input.shape() == target.shape())) {
    throw ShapeError(message(who, ": the input is ", describe(input), " and the target ",
                             describe(target),
                             "; they must have one shape (reshape, or expand the smaller)"));
  }
}

/// Converts a target of integers or bools to the input's dtype. Floating targets are promoted by
/// the ops.
Tensor as_floating(const Tensor& target, const Tensor& input) {
  return is_floating(target.dtype()) ? target : target.to(input.dtype());
}

void check_above_zero(double value, const char* what, const char* who) {
  // The condition is false for NaN.
  if (!(value > 0)) {
    throw ValueError(message(who, ": ", what, " must be positive, not ", number_text(value)));
  }
}

void check_class_weight(const Tensor& weight, std::int64_t classes, const char* who) {
  if (weight.defined() && !(weight.shape() == Dims{classes})) {
    throw ShapeError(message(who, ": the weight is ", describe(weight), " for ", classes,
                             " classes; needs one number per class"));
  }
}

void check_classes(const Tensor& target, const char* who) {
  require_defined(target, "the target", who);
  if (!is_integer(target.dtype())) {
    throw DTypeError(
        message(who, ": the target must hold classes, integers, not ", describe(target)));
  }
}

/// -t log x - (1 - t) log(1 - x). It has its own backward: the gradient of log is infinite at 0,
/// which is a valid input here.
struct BinaryCrossEntropy : autograd::Function<BinaryCrossEntropy> {
  static constexpr const char* kName = "binary_cross_entropy";
  static constexpr double kLeast = -100.0;
  static constexpr double kFloor = 1e-12F;  // PyTorch's, which is a float

  static Tensor log_of(const Tensor& x) { return clip(log(x), kLeast, {}); }
  static Tensor log_of_rest(const Tensor& x) { return clip(log1p(negative(x)), kLeast, {}); }

  static Tensor forward(Context& context, const Tensor& x, const Tensor& t) {
    context.save_for_backward({x, t});
    return (t - 1.0) * log_of_rest(x) - t * log_of(x);
  }
  static Tensors backward(Context& context, const Tensors& g) {
    const Tensors saved = context.saved();
    const Tensor& x = saved[0];
    const Tensor& t = saved[1];
    Tensors gradients(2);
    if (context.needs_grad(0)) {
      gradients[0] = g[0] * (x - t) / maximum(x * (1.0 - x), kFloor);
    }
    if (context.needs_grad(1)) gradients[1] = g[0] * (log_of_rest(x) - log_of(x));
    return gradients;
  }
};

/// (1 - t) x + l softplus(-x), where l (undefined: 1) is the weight of the second part. The terms
/// that can be large are added first and cancel exactly. It has its own backward: max and abs are
/// not differentiable at 0, their sum is.
struct LogisticLoss : autograd::Function<LogisticLoss> {
  static constexpr const char* kName = "binary_cross_entropy_with_logits";

  static Tensor softplus_of_minus(const Tensor& x) {
    return maximum(negative(x), 0.0) + log1p(exp(negative(abs(x))));
  }
  static Tensor forward(Context& context, const Tensor& x, const Tensor& t, const Tensor& l) {
    context.save_for_backward({x, t, l});
    const Tensor small = log1p(exp(negative(abs(x))));
    if (!l.defined()) return maximum(x, 0.0) - x * t + small;
    return (1.0 - t) * x + l * maximum(negative(x), 0.0) + l * small;
  }
  static Tensors backward(Context& context, const Tensors& g) {
    const Tensors saved = context.saved();
    const Tensor& x = saved[0];
    const Tensor& t = saved[1];
    const Tensor& l = saved[2];
    Tensors gradients(3);
    if (context.needs_grad(0)) {
      const Tensor slope = l.defined() ? (1.0 - t) - l * sigmoid(negative(x)) : sigmoid(x) - t;
      gradients[0] = g[0] * slope;
    }
    if (context.needs_grad(1)) gradients[1] = negative(g[0] * x);
    if (context.needs_grad(2)) gradients[2] = g[0] * softplus_of_minus(x);
    return gradients;
  }
};

}  // namespace

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  check_pair(input, target, "mse_loss");
  const Widened wide({&input, &target});
  return wide.rounded(reduced(square(wide(input) - wide(target)), reduction));
}

Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  check_pair(input, target, "l1_loss");
  const Widened wide({&input, &target});
  return wide.rounded(reduced(abs(wide(input) - wide(target)), reduction));
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction, double beta) {
  constexpr const char* kWho = "smooth_l1_loss";
  check_pair(input, target, kWho);
  if (beta != 0.0) check_above_zero(beta, "beta", kWho);
  const Widened wide({&input, &target});
  const Tensor d = abs(wide(input) - wide(target));
  if (beta == 0.0) return wide.rounded(reduced(d, reduction));
  return wide.rounded(
      reduced(where(d < beta, square(d) * (0.5 / beta), d - 0.5 * beta), reduction));
}

Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction, double delta) {
  constexpr const char* kWho = "huber_loss";
  check_pair(input, target, kWho);
  check_above_zero(delta, "delta", kWho);
  const Widened wide({&input, &target});
  const Tensor d = abs(wide(input) - wide(target));
  return wide.rounded(
      reduced(where(d < delta, square(d) * 0.5, (d - 0.5 * delta) * delta), reduction));
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight,
                            Reduction reduction) {
  constexpr const char* kWho = "binary_cross_entropy";
  check_pair(input, target, kWho);
  if (input.numel() > 0) {
    // A NaN fails both comparisons and is passed on.
    const auto least = amin(input).item<double>();
    const auto most = amax(input).item<double>();
    if (least < 0.0 || most > 1.0) {
      throw ValueError(message(kWho, ": the input ", describe(input), " holds ",
                               number_text(least < 0.0 ? least : most),
                               ", not a probability; binary_cross_entropy_with_logits takes any"));
    }
  }
  return in_name_of(kWho, [&] {
    const Widened wide({&input, &target, &weight});
    Tensor each = BinaryCrossEntropy::apply(wide(input), wide(as_floating(target, input)));
    if (weight.defined()) each = each * wide(weight);
    return wide.rounded(reduced(each, reduction));
  });
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const Tensor& weight, const Tensor& pos_weight,
                                        Reduction reduction) {
  check_pair(input, target, "binary_cross_entropy_with_logits");
  return in_name_of(LogisticLoss::kName, [&] {
    const Widened wide({&input, &target, &weight, &pos_weight});
    const Tensor t = wide(as_floating(target, input));
    const Tensor factor = pos_weight.defined() ? (wide(pos_weight) - 1.0) * t + 1.0 : Tensor();
    Tensor each = LogisticLoss::apply(wide(input), t, factor);
    if (weight.defined()) each = each * wide(weight);
    return wide.rounded(reduced(each, reduction));
  });
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLOptions& options) {
  constexpr const char* kWho = "nll_loss";
  check_input(input, kWho);
  check_classes(target, kWho);
  if (input.ndim() == 0) {
    throw ShapeError(message(kWho, ": needs [C] or [N, C, ...], not ", describe(input)));
  }
  const int axis = input.ndim() == 1 ? 0 : 1;
  const std::int64_t classes = input.shape()[axis];
  Dims expected = input.shape();
  expected.erase(axis);
  if (!(target.shape() == expected)) {
    throw ShapeError(message(kWho, ": the input is ", describe(input), " and the target ",
                             describe(target), "; needed is ", to_string(expected)));
  }
  check_class_weight(options.weight, classes, kWho);
  const Tensor labels = target.to(DType::Int64);
  const Tensor counted = labels != options.ignore_index;
  const Tensor safe = where(counted, labels, std::int64_t{0});
  if (safe.numel() > 0) {
    const auto least = amin(safe).item<std::int64_t>();
    const auto most = amax(safe).item<std::int64_t>();
    if (least < 0 || most >= classes) {
      throw IndexError(message(kWho, ": the target ", describe(target), " holds class ",
                               least < 0 ? least : most, " of ", classes, "; ignore_index is ",
                               options.ignore_index));
    }
  }
  const Widened wide({&input, &options.weight});
  const Tensor picked = wide(squeeze(gather(input, axis, expand_dims(safe, {axis})), axis));
  const Tensor ones_or_weight = options.weight.defined()
                                    ? wide(take(options.weight, safe, 0))
                                    : ones(safe.shape(), picked.dtype(), picked.device());
  const Tensor weight = where(counted, ones_or_weight, 0.0);
  // Not a product with 0: the log-probability of an ignored target may be -inf.
  const Tensor each = where(counted, negative(picked) * ones_or_weight, 0.0);
  if (options.reduction == Reduction::Mean) return wide.rounded(sum(each) / sum(weight));
  return wide.rounded(reduced(each, options.reduction));
}

Tensor kl_div(const Tensor& input, const Tensor& target, Reduction reduction, bool log_target) {
  check_pair(input, target, "kl_div");
  const Widened wide({&input, &target});
  const Tensor x = wide(input);
  const Tensor t = wide(as_floating(target, input));
  if (log_target) return wide.rounded(reduced(exp(t) * (t - x), reduction));
  // 0 log 0 is 0. The inner `where` keeps infinities out of the gradient.
  const Tensor none = t == 0.0;
  const Tensor entropy = where(none, 0.0, t * log(where(none, 1.0, t)));
  return wide.rounded(reduced(entropy - t * x, reduction));
}

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin,
                            Reduction reduction) {
  check_pair(input, target, "hinge_embedding_loss");
  const Widened wide({&input});
  const Tensor x = wide(input);
  const Tensor near = where(target != -1, x, 0.0);
  const Tensor far = where(target != 1, relu(margin - x), 0.0);
  return wide.rounded(reduced(near + far, reduction));
}

Tensor multi_margin_loss(const Tensor& input, const Tensor& target,
                         const MultiMarginOptions& options) {
  constexpr const char* kWho = "multi_margin_loss";
  check_input(input, kWho);
  check_classes(target, kWho);
  if (options.p != 1 && options.p != 2) {
    throw ValueError(message(kWho, ": p must be 1 or 2, not ", options.p));
  }
  const bool batched = input.ndim() == 2;
  if ((input.ndim() != 1 && !batched) ||
      !(target.shape() == (batched ? Dims{input.shape()[0]} : Dims{}))) {
    throw ShapeError(message(kWho, ": needs [N, C] with [N], or [C] with one class, not ",
                             describe(input), " with ", describe(target)));
  }
  const std::int64_t classes = input.shape().back();
  check_class_weight(options.weight, classes, kWho);
  const Tensor labels = expand_dims(target.to(DType::Int64), {-1});
  if (labels.numel() > 0) {
    const auto least = amin(labels).item<std::int64_t>();
    const auto most = amax(labels).item<std::int64_t>();
    if (least < 0 || most >= classes) {
      throw IndexError(message(kWho, ": the target ", describe(target), " holds class ",
                               least < 0 ? least : most, " of ", classes));
    }
  }
  const Widened wide({&input, &options.weight});
  const Tensor x = wide(input);
  const Tensor own = gather(x, -1, labels);
  Tensor terms = relu(options.margin - own + x);
  if (options.p == 2) terms = square(terms);
  if (options.weight.defined()) terms = terms * wide(take(options.weight, labels, 0));
  const Tensor others = arange(classes, DType::Int64, labels.device()) != labels;
  const Tensor each = sum(where(others, terms, 0.0), -1) / static_cast<double>(classes);
  return wide.rounded(reduced(each, options.reduction));
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             double margin, Reduction reduction) {
  constexpr const char* kWho = "cosine_embedding_loss";
  check_pair(input1, input2, kWho);
  require_defined(target, "the target", kWho);
  Dims expected = input1.shape();
  if (!expected.empty()) expected.erase(expected.size() - 1);
  if (input1.ndim() == 0 || input1.ndim() > 2 || !(target.shape() == expected)) {
    throw ShapeError(message(kWho, ": needs two of [N, D] with a target [N], or [D] with one, not ",
                             describe(input1), " and ", describe(input2), " with ",
                             describe(target)));
  }
  constexpr double kRootEps = 1e-6;  // its square is added to the sums of squares, as in PyTorch
  const Widened wide({&input1, &input2});
  const Tensor a = wide(input1);
  const Tensor b = wide(input2);
  // Vectors are normalised first: products and sums of squares could overflow.
  const auto direction = [](const Tensor& t) {
    return t / hypot(norm(t, 2.0, -1, true), kRootEps);
  };
  const Tensor cosine = sum(direction(a) * direction(b), -1);
  const Tensor near = where(target == 1, 1.0 - cosine, 0.0);
  const Tensor far = where(target == -1, relu(cosine - margin), 0.0);
  return wide.rounded(reduced(near + far, reduction));
}

}  // namespace baregrad::nn

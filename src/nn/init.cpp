// Initialisation of weights.
#include "baregrad/nn/init.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/message.h"
#include "core/number_text.h"
#include "nn/check.h"
#include "ops/dispatch.h"

namespace baregrad::nn::init {

namespace {

void require_floating(const Tensor& t, const char* who) {
  require_defined(t, "the tensor", who);
  if (!is_floating(t.dtype())) {
    throw DTypeError(message(who, ": takes a floating tensor, not ", describe(t)));
  }
}

const Tensor& assign(const Tensor& t, const Tensor& values) {
  const no_grad off;
  return t.copy_(values);
}

Fans fans_of(const Tensor& t, const char* who) {
  require_floating(t, who);
  if (t.ndim() < 2) {
    throw ShapeError(message(who, ": ", describe(t), " has no fans; a weight [out, in, ...] has"));
  }
  std::int64_t window = 1;
  for (int i = 2; i < t.ndim(); ++i) window = checked_mul(window, t.shape()[i], who);
  return {checked_mul(t.shape()[1], window, who), checked_mul(t.shape()[0], window, who)};
}

/// sqrt(scale / fan). Any value will do for a weight without elements.
double deviation_of(double scale, double fan) { return fan > 0 ? std::sqrt(scale / fan) : 0.0; }

double kaiming_deviation(const Tensor& t, const KaimingOptions& options, const char* who) {
  const Fans both = fans_of(t, who);
  const double gain = calculate_gain(options.nonlinearity, options.slope);
  const std::int64_t fan = options.fan == Fan::In ? both.in : both.out;
  return deviation_of(gain * gain, static_cast<double>(fan));
}

double xavier_deviation(const Tensor& t, double gain, const char* who) {
  const Fans both = fans_of(t, who);
  return deviation_of(2.0 * gain * gain,
                      static_cast<double>(both.in) + static_cast<double>(both.out));
}

/// The cumulative standard normal distribution, accurate to the last bits for negative x.
double cumulative(double x) { return 0.5 * std::erfc(-x * std::numbers::sqrt2 / 2); }

/// Makes the rows of [rows, length] orthonormal, rows <= length: block by block, so that most of
/// the work is matrix products. A second round removes what rounding left in the first.
void orthonormalize(const Tensor& rows) {
  constexpr std::int64_t kBlock = 32;
  const std::int64_t count = rows.shape()[0];
  for (std::int64_t start = 0; start < count; start += kBlock) {
    const Tensor done = narrow(rows, 0, 0, start);
    const Tensor block = narrow(rows, 0, start, std::min(kBlock, count - start));
    for (int round = 0; round < 2; ++round) {
      if (start > 0) subtract_(block, matmul(matmul(block, done.mT()), done));
      copy_(block, run(OpId::linalg_orthonormal_rows, {&block}, {}, "orthogonal_"));
    }
  }
}

/// Positions of the elements of a vector outside [first, last].
Tensor positions_outside(const Tensor& values, double first, double last) {
  return nonzero(logical_or(values<first, values> last))[0];
}

/// Normal numbers in [first, last]: what falls outside is drawn again. For bounds that hold a good
/// part of the distribution.
Tensor draw_between(const Tensor& like, double first, double last, Generator* generator) {
  const auto draw = [&](std::int64_t count) {
    return normal({count}, 0.0, 1.0, DType::Float64, generator, like.device());
  };
  const Tensor values = draw(like.numel());
  Tensor outside = positions_outside(values, first, last);
  while (outside.numel() != 0) {
    const Tensor again = draw(outside.numel());
    index_put_(values, {outside}, again);
    outside = take(outside, positions_outside(again, first, last));
  }
  return reshape(values, like.shape());
}

/// The same for any bounds, from uniform numbers; far slower. `from` and `to` are the
/// probabilities below the bounds.
Tensor invert_between(const Tensor& like, double first, double last, double from, double to,
                      Generator* generator) {
  // Beyond 40 deviations there is nothing in doubles.
  const NumbersAttrs bounds{{std::max(first, -40.0), std::min(last, 40.0)}};
  const Tensor numbers = uniform(like.shape(), 0.0, 1.0, DType::Float64, generator, like.device());
  const Tensor p = numbers * (to - from) + from;
  return run(OpId::normal_quantile, {&p}, bounds, "trunc_normal_");
}

}  // namespace

double calculate_gain(Nonlinearity nonlinearity, double slope) {
  switch (nonlinearity) {
    case Nonlinearity::Linear:
    case Nonlinearity::Sigmoid:
      return 1.0;
    case Nonlinearity::Tanh:
      return 5.0 / 3.0;
    case Nonlinearity::Relu:
      return std::numbers::sqrt2;
    case Nonlinearity::LeakyRelu:
      return std::sqrt(2.0 / (1.0 + slope * slope));
    case Nonlinearity::Selu:
      return 0.75;
  }
  return 1.0;
}

Fans fans(const Tensor& weight) { return fans_of(weight, "fans"); }

const Tensor& uniform_(const Tensor& t, double low, double high, Generator* generator) {
  require_floating(t, "uniform_");
  return assign(t, uniform(t.shape(), low, high, t.dtype(), generator, t.device()));
}

const Tensor& normal_(const Tensor& t, double mean, double deviation, Generator* generator) {
  require_floating(t, "normal_");
  return assign(t, normal(t.shape(), mean, deviation, t.dtype(), generator, t.device()));
}

const Tensor& trunc_normal_(const Tensor& t, double mean, double deviation, double low, double high,
                            Generator* generator) {
  constexpr const char* kWho = "trunc_normal_";
  require_floating(t, kWho);
  // The condition is false for NaN.
  if (!(std::isfinite(mean) && std::isfinite(deviation) && deviation > 0 && low < high)) {
    throw ValueError(message(kWho, ": mean ", number_text(mean), ", deviation ",
                             number_text(deviation), ", bounds ", number_text(low), " and ",
                             number_text(high),
                             "; the deviation must be positive and the first bound the lesser"));
  }
  double first = (low - mean) / deviation;
  double last = (high - mean) / deviation;
  // The upper tail is mirrored to the lower one, where differences of probabilities are exact.
  const bool mirrored = first > 0;
  if (mirrored) {
    std::swap(first, last);
    first = -first;
    last = -last;
  }
  const double from = cumulative(first);
  const double to = cumulative(last);
  if (!(to > from)) {
    throw ValueError(message(kWho, ": nothing of the distribution with mean ", number_text(mean),
                             " and deviation ", number_text(deviation), " lies between ",
                             number_text(low), " and ", number_text(high)));
  }
  const Tensor values = to - from > 0.25 ? draw_between(t, first, last, generator)
                                         : invert_between(t, first, last, from, to, generator);
  const Tensor scaled = values * (mirrored ? -deviation : deviation) + mean;
  return assign(t, clip(scaled, low, high));
}

const Tensor& constant_(const Tensor& t, const Scalar& value) {
  require_defined(t, "the tensor", "constant_");
  const no_grad off;
  return t.fill_(value);
}
const Tensor& zeros_(const Tensor& t) { return constant_(t, 0.0); }
const Tensor& ones_(const Tensor& t) { return constant_(t, 1.0); }

const Tensor& xavier_uniform_(const Tensor& t, double gain, Generator* generator) {
  const double bound = std::sqrt(3.0) * xavier_deviation(t, gain, "xavier_uniform_");
  return uniform_(t, -bound, bound, generator);
}

const Tensor& xavier_normal_(const Tensor& t, double gain, Generator* generator) {
  return normal_(t, 0.0, xavier_deviation(t, gain, "xavier_normal_"), generator);
}

const Tensor& kaiming_uniform_(const Tensor& t, const KaimingOptions& options,
                               Generator* generator) {
  const double bound = std::sqrt(3.0) * kaiming_deviation(t, options, "kaiming_uniform_");
  return uniform_(t, -bound, bound, generator);
}

const Tensor& kaiming_normal_(const Tensor& t, const KaimingOptions& options,
                              Generator* generator) {
  return normal_(t, 0.0, kaiming_deviation(t, options, "kaiming_normal_"), generator);
}

const Tensor& orthogonal_(const Tensor& t, double gain, Generator* generator) {
  constexpr const char* kWho = "orthogonal_";
  require_floating(t, kWho);
  if (t.ndim() < 2) {
    throw ShapeError(message(kWho, ": ", describe(t), " is no matrix; needs two or more axes"));
  }
  if (t.numel() == 0) return t;
  const std::int64_t rows = t.shape()[0];
  const std::int64_t columns = t.numel() / rows;
  const std::int64_t few = std::min(rows, columns);
  const std::int64_t many = std::max(rows, columns);
  const Tensor vectors = normal({few, many}, 0.0, 1.0, DType::Float64, generator, t.device());
  orthonormalize(vectors);
  const Tensor matrix = rows <= columns ? vectors : vectors.mT();
  return assign(t, reshape(matrix, t.shape()) * gain);
}

void default_weight_and_bias_(const Tensor& weight, const Tensor& bias, Generator* generator) {
  // Kaiming's bound for a slope of sqrt 5 is 1 / sqrt(fan in).
  const double bound =
      deviation_of(1.0, static_cast<double>(fans_of(weight, "default_weight_and_bias_").in));
  uniform_(weight, -bound, bound, generator);
  if (bias.defined()) uniform_(bias, -bound, bound, generator);
}

}  // namespace baregrad::nn::init

// Initialisation of weights.
#include "baregrad/nn/init.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/message.h"
#include "core/number_text.h"
#include "nn/check.h"

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

/// The x in [low, high] with cumulative(x) = p. Newton's method on the logarithm, which is concave
/// and steep enough in the tail; a step that would leave the bracket is replaced by bisection.
double inverse_cumulative(double p, double low, double high) {
  const double wanted = std::log(p);
  double x = std::clamp(0.0, low, high);
  for (int step = 0; step < 100; ++step) {
    const double reached = cumulative(x);
    const double error = std::log(reached) - wanted;
    (error > 0 ? high : low) = x;
    const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    double next = x - error * reached / density;
    if (!(next > low && next < high)) next = low + (high - low) / 2;
    if (std::fabs(next - x) <= 1e-15 * std::max(1.0, std::fabs(x))) return next;
    x = next;
  }
  return x;
}

double dot(const double* a, const double* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// Orthonormalises the rows of [rows, length], rows <= length, by modified Gram-Schmidt.
void orthonormalize_few(double* matrix, std::int64_t rows, std::int64_t length) {
  for (std::int64_t r = 0; r < rows; ++r) {
    double* row = matrix + r * length;
    for (std::int64_t k = 0; k < r; ++k) {
      const double* done = matrix + k * length;
      const double along = dot(row, done, length);
      for (std::int64_t i = 0; i < length; ++i) row[i] -= along * done[i];
    }
    const double norm = std::sqrt(dot(row, row, length));
    for (std::int64_t i = 0; i < length; ++i) row[i] /= norm;
  }
}

/// The same for many rows, in blocks, so that most of the work is matrix products. A second pass
/// removes the rounding errors of the first.
void orthonormalize(const Tensor& rows) {
  constexpr std::int64_t kBlock = 32;
  const std::int64_t count = rows.shape()[0];
  const std::int64_t length = rows.shape()[1];
  for (std::int64_t start = 0; start < count; start += kBlock) {
    const Tensor done = narrow(rows, 0, 0, start);
    const Tensor block = narrow(rows, 0, start, std::min(kBlock, count - start));
    for (int round = 0; round < 2; ++round) {
      if (start > 0) subtract_(block, matmul(matmul(block, done.mT()), done));
      orthonormalize_few(block.data<double>(), block.shape()[0], length);
    }
  }
}

/// Normal numbers in [first, last] by rejection. For bounds that contain a large part of the
/// distribution.
Tensor draw_between(const Dims& shape, double first, double last, Generator* generator) {
  Tensor values = normal(shape, 0.0, 1.0, DType::Float64, generator, Device());
  auto* value = values.data<double>();
  std::vector<std::int64_t> outside(static_cast<std::size_t>(values.numel()));
  std::iota(outside.begin(), outside.end(), 0);
  while (true) {
    std::erase_if(outside, [&](std::int64_t i) { return value[i] >= first && value[i] <= last; });
    if (outside.empty()) return values;
    const Tensor again = normal({static_cast<std::int64_t>(outside.size())}, 0.0, 1.0,
                                DType::Float64, generator, Device());
    const auto* next = again.data<double>();
    for (std::size_t k = 0; k < outside.size(); ++k) value[outside[k]] = next[k];
  }
}

/// The same for any bounds, by inversion of uniform numbers, which is much slower. `from` and `to`
/// are the probabilities below the bounds.
Tensor invert_between(const Dims& shape, double first, double last, double from, double to,
                      Generator* generator) {
  // Beyond 40 deviations the probability is zero in double.
  const double begin = std::max(first, -40.0);
  const double end = std::min(last, 40.0);
  Tensor values = uniform(shape, 0.0, 1.0, DType::Float64, generator, Device());
  auto* value = values.data<double>();
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    const double p = from + (to - from) * value[i];
    value[i] = p > 0 ? inverse_cumulative(p, begin, end) : begin;
  }
  return values;
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
  const Tensor values = to - from > 0.25
                            ? draw_between(t.shape(), first, last, generator)
                            : invert_between(t.shape(), first, last, from, to, generator);
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
  const Tensor vectors = normal({few, many}, 0.0, 1.0, DType::Float64, generator, Device());
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

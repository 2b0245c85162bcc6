// Random tensors: public functions and infer functions. The numbers of a call are fixed by the
// generator's state when it begins; the kernels compute them from seed, position and element alone.
#include <cmath>
#include <limits>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/message.h"
#include "core/number_text.h"
#include "core/visit.h"
#include "ops/dispatch.h"
#include "ops/infer.h"
#include "ops/random_blocks.h"

namespace baregrad {

namespace {

const char* public_name(const OpCall& call) {
  switch (call.op) {
    case OpId::random_uniform:
      return call.attrs.as<RandomRealAttrs>().standard ? "rand" : "uniform";
    case OpId::random_normal:
      return call.attrs.as<RandomRealAttrs>().standard ? "randn" : "normal";
    case OpId::random_int:
      return "randint";
    case OpId::random_perm:
      return "randperm";
    default:
      return op_name(call.op);
  }
}

/// A call that takes as many numbers from the generator as its elements need. Eager execution takes
/// them once everything has been checked: a call that is refused moves nothing.
Tensor draw(OpCall call, Generator* generator) {
  call.who = public_name(call);
  const OutputSpec out = infer_irregular(call)[0];
  const std::int64_t per_block = elements_per_block(call.op, out.dtype);
  const std::int64_t numel = checked_numel(out.shape, out.dtype, call.who);
  call.generator = generator != nullptr ? generator : &default_generator();
  call.draws = static_cast<std::uint64_t>(numel / per_block + (numel % per_block != 0 ? 1 : 0));
  return run(call);
}

Tensor draw(OpId op, AttrsRef attrs, Generator* generator, DeviceOption device) {
  return draw({.op = op, .inputs = {}, .attrs = attrs, .device = device.value_or(default_device())},
              generator);
}

void check_floating(const char* who, DType dtype) {
  if (!is_floating(dtype)) {
    throw DTypeError(message(who, ": draws floats, not ", name(dtype), "; randint draws integers"));
  }
}

void check_uniform(const char* who, const RandomRealAttrs& attrs) {
  check_floating(who, attrs.dtype);
  const double low = attrs.first;
  const double high = attrs.second;
  const double most = greatest_finite(attrs.dtype);
  // Written so that NaN fails.
  if (!(std::fabs(low) <= most && std::fabs(high) <= most)) {
    throw ValueError(message(who, ": the bounds ", number_text(low), " and ", number_text(high),
                             " are not finite ", name(attrs.dtype), " numbers"));
  }
  if (low > high) {
    throw ValueError(
        message(who, ": low ", number_text(low), " is greater than high ", number_text(high)));
  }
}

void check_normal(const char* who, const RandomRealAttrs& attrs) {
  check_floating(who, attrs.dtype);
  const double mean = attrs.first;
  const double deviation = attrs.second;
  if (!std::isfinite(mean) || !std::isfinite(deviation) || deviation < 0) {
    throw ValueError(message(who, ": mean ", number_text(mean), " and deviation ",
                             number_text(deviation),
                             " must be finite, the deviation not negative"));
  }
}

struct IntRange {
  std::int64_t low;
  std::int64_t high;  ///< inclusive
};

/// The integers that `dtype` holds exactly, all of them from low to high, as far as int64 goes.
IntRange exact_integers(DType dtype) {
  return visit_dtype(dtype, []<class T>(TypeTag<T>) -> IntRange {
    if constexpr (std::is_same_v<T, bool>) {
      return {0, 1};
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      return {0, std::numeric_limits<std::int64_t>::max()};
    } else if constexpr (std::is_integral_v<T>) {
      return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
    } else {
      constexpr int kBits = std::is_same_v<T, Float16>    ? 11
                            : std::is_same_v<T, BFloat16> ? 8
                            : std::is_same_v<T, float>    ? 24
                                                          : 53;
      return {-(std::int64_t{1} << kBits), std::int64_t{1} << kBits};
    }
  });
}

void check_int(const char* who, const RandomIntAttrs& attrs) {
  const std::int64_t low = attrs.low;
  const std::int64_t high = attrs.high;
  if (low >= high) {
    throw ValueError(message(who, ": no integer lies in [", low, ", ", high, ")"));
  }
  const IntRange range = exact_integers(attrs.dtype);
  if (low < range.low || high - 1 > range.high) {
    throw ValueError(message(who, ": [", low, ", ", high, ") does not fit ", name(attrs.dtype),
                             ", which holds ", range.low, " to ", range.high));
  }
}

void check_perm(const char* who, const RandomPermAttrs& attrs) {
  const std::int64_t n = attrs.count;
  if (!is_integer(attrs.dtype)) {
    throw DTypeError(message(who, ": positions are integers, not ", name(attrs.dtype)));
  }
  if (n < 0) throw ValueError(message(who, ": the count is negative: ", n));
  if (n - 1 > exact_integers(attrs.dtype).high) {
    throw ValueError(message(who, ": ", n, " positions do not fit ", name(attrs.dtype)));
  }
}

}  // namespace

Tensor rand(const Dims& shape, DType dtype, Generator* generator, DeviceOption device) {
  return draw(OpId::random_uniform, RandomRealAttrs{shape, dtype, 0.0, 1.0, true}, generator,
              device);
}
Tensor uniform(const Dims& shape, double low, double high, DType dtype, Generator* generator,
               DeviceOption device) {
  return draw(OpId::random_uniform, RandomRealAttrs{shape, dtype, low, high, false}, generator,
              device);
}
Tensor randn(const Dims& shape, DType dtype, Generator* generator, DeviceOption device) {
  return draw(OpId::random_normal, RandomRealAttrs{shape, dtype, 0.0, 1.0, true}, generator,
              device);
}
Tensor normal(const Dims& shape, double mean, double deviation, DType dtype, Generator* generator,
              DeviceOption device) {
  return draw(OpId::random_normal, RandomRealAttrs{shape, dtype, mean, deviation, false}, generator,
              device);
}

Tensor randint(std::int64_t low, std::int64_t high, const Dims& shape, DType dtype,
               Generator* generator, DeviceOption device) {
  return draw(OpId::random_int, RandomIntAttrs{shape, dtype, low, high}, generator, device);
}

Tensor randperm(std::int64_t n, DType dtype, Generator* generator, DeviceOption device) {
  return draw(OpId::random_perm, RandomPermAttrs{n, dtype}, generator, device);
}

Tensor bernoulli(const Tensor& p, Generator* generator) {
  if (!p.defined()) throw ValueError("bernoulli: the tensor of probabilities is undefined");
  const Tensor* inputs[] = {&p};
  const BernoulliAttrs attrs;
  return draw({.op = OpId::bernoulli, .inputs = inputs, .attrs = attrs}, generator);
}

Tensor bernoulli(const Dims& shape, double p, DType dtype, Generator* generator,
                 DeviceOption device) {
  return draw(OpId::bernoulli, BernoulliAttrs{shape, dtype, p}, generator, device);
}

std::vector<OutputSpec> infer_random_real(const OpCall& call) {
  const auto& attrs = call.attrs.as<RandomRealAttrs>();
  if (call.op == OpId::random_uniform) {
    check_uniform(public_name(call), attrs);
  } else {
    check_normal(public_name(call), attrs);
  }
  return {{attrs.shape, attrs.dtype}};
}

std::vector<OutputSpec> infer_random_int(const OpCall& call) {
  const auto& attrs = call.attrs.as<RandomIntAttrs>();
  check_int(public_name(call), attrs);
  return {{attrs.shape, attrs.dtype}};
}

std::vector<OutputSpec> infer_random_perm(const OpCall& call) {
  const auto& attrs = call.attrs.as<RandomPermAttrs>();
  check_perm(public_name(call), attrs);
  return {{{attrs.count}, attrs.dtype}};
}

std::vector<OutputSpec> infer_normal_quantile(const OpCall& call) {
  const Tensor& p = *call.inputs[0];
  if (p.dtype() != DType::Float64) {
    throw DTypeError(message(call.name(), ": takes float64, not ", describe(p)));
  }
  return {{p.shape(), p.dtype()}};
}

std::vector<OutputSpec> infer_bernoulli(const OpCall& call) {
  if (call.inputs.empty()) {
    const auto& attrs = call.attrs.as<BernoulliAttrs>();
    if (!(attrs.p >= 0 && attrs.p <= 1)) {
      throw ValueError(message("bernoulli: ", number_text(attrs.p),
                               " is no probability: it must lie in [0, 1]"));
    }
    return {{attrs.shape, attrs.dtype}};
  }
  const Tensor& p = *call.inputs[0];
  if (!is_floating(p.dtype())) {
    throw DTypeError(message("bernoulli: probabilities are floats, not ", describe(p)));
  }
  return {{p.shape(), p.dtype()}};
}

}  // namespace baregrad

// Random tensors: public functions and infer functions. The numbers of a call are fixed by the
// generator's state when it begins; the kernels compute them from seed, position and element alone.
#include "backends/cpu/irregular/random.h"

#include <cmath>
#include <limits>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/message.h"
#include "core/number_text.h"
#include "core/visit.h"
#include "ops/dispatch.h"
#include "ops/irregular.h"

namespace baregrad {

namespace {

// All random ops read: ints[0] seed, ints[1] position, dims[0] the shape, dtype; flag: the caller
// asked for the standard distribution (rand, randn), which messages then name.

const char* public_name(const OpCall& call) {
  switch (call.op) {
    case OpId::random_uniform:
      return call.attrs.flag ? "rand" : "uniform";
    case OpId::random_normal:
      return call.attrs.flag ? "randn" : "normal";
    case OpId::random_int:
      return "randint";
    case OpId::random_perm:
      return "randperm";
    default:
      return op_name(call.op);
  }
}

/// Checks first, then takes its numbers from the generator: a call that is refused moves nothing.
Tensor draw(const OpCall& call, Generator* generator) {
  const OutputSpec out = infer_irregular(call)[0];
  const std::int64_t per_block = kernels::elements_per_block(call.op, out.dtype);
  const std::int64_t numel = checked_numel(out.shape, out.dtype, public_name(call));
  const std::int64_t blocks = numel / per_block + (numel % per_block != 0 ? 1 : 0);
  Generator& source = generator != nullptr ? *generator : default_generator();
  const Generator::State state = source.advance(static_cast<std::uint64_t>(blocks));
  Attrs attrs = call.attrs;
  attrs.ints[0] = static_cast<std::int64_t>(state.seed);
  attrs.ints[1] = static_cast<std::int64_t>(state.position);
  return run({call.op, call.inputs, attrs, public_name(call)});
}

Tensor draw(OpId op, const Dims& shape, double a, double b, bool standard, DType dtype,
            Generator* generator) {
  Attrs attrs;
  attrs.dims[0] = shape;
  attrs.params[0] = a;
  attrs.params[1] = b;
  attrs.flag = standard;
  attrs.dtype = dtype;
  return draw({op, {}, attrs}, generator);
}

void check_floating(const char* who, DType dtype) {
  if (!is_floating(dtype)) {
    throw DTypeError(message(who, ": draws floats, not ", name(dtype), "; randint draws integers"));
  }
}

void check_uniform(const char* who, const Attrs& attrs) {
  check_floating(who, attrs.dtype);
  const double low = attrs.params[0];
  const double high = attrs.params[1];
  const double most = kernels::greatest_finite(attrs.dtype);
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

void check_normal(const char* who, const Attrs& attrs) {
  check_floating(who, attrs.dtype);
  const double mean = attrs.params[0];
  const double deviation = attrs.params[1];
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

void check_int(const char* who, const Attrs& attrs) {
  const std::int64_t low = attrs.ints[2];
  const std::int64_t high = attrs.ints[3];
  if (low >= high) {
    throw ValueError(message(who, ": no integer lies in [", low, ", ", high, ")"));
  }
  const IntRange range = exact_integers(attrs.dtype);
  if (low < range.low || high - 1 > range.high) {
    throw ValueError(message(who, ": [", low, ", ", high, ") does not fit ", name(attrs.dtype),
                             ", which holds ", range.low, " to ", range.high));
  }
}

void check_perm(const char* who, const Attrs& attrs) {
  const std::int64_t n = attrs.dims[0][0];
  if (!is_integer(attrs.dtype)) {
    throw DTypeError(message(who, ": positions are integers, not ", name(attrs.dtype)));
  }
  if (n < 0) throw ValueError(message(who, ": the count is negative: ", n));
  if (n - 1 > exact_integers(attrs.dtype).high) {
    throw ValueError(message(who, ": ", n, " positions do not fit ", name(attrs.dtype)));
  }
}

[[noreturn]] void throw_not_probability(double p, const std::string& where) {
  throw ValueError(
      message("bernoulli: ", number_text(p), where, " is no probability: it must lie in [0, 1]"));
}

}  // namespace

Tensor rand(const Dims& shape, DType dtype, Generator* generator) {
  return draw(OpId::random_uniform, shape, 0.0, 1.0, true, dtype, generator);
}
/// random_uniform reads: params low and high.
Tensor uniform(const Dims& shape, double low, double high, DType dtype, Generator* generator) {
  return draw(OpId::random_uniform, shape, low, high, false, dtype, generator);
}
Tensor randn(const Dims& shape, DType dtype, Generator* generator) {
  return draw(OpId::random_normal, shape, 0.0, 1.0, true, dtype, generator);
}
/// random_normal reads: params mean and deviation.
Tensor normal(const Dims& shape, double mean, double deviation, DType dtype, Generator* generator) {
  return draw(OpId::random_normal, shape, mean, deviation, false, dtype, generator);
}

/// random_int reads: ints[2] low, ints[3] high.
Tensor randint(std::int64_t low, std::int64_t high, const Dims& shape, DType dtype,
               Generator* generator) {
  Attrs attrs;
  attrs.dims[0] = shape;
  attrs.ints[2] = low;
  attrs.ints[3] = high;
  attrs.dtype = dtype;
  return draw({OpId::random_int, {}, attrs}, generator);
}

Tensor randperm(std::int64_t n, DType dtype, Generator* generator) {
  Attrs attrs;
  attrs.dims[0] = {n};
  attrs.dtype = dtype;
  return draw({OpId::random_perm, {}, attrs}, generator);
}

Tensor bernoulli(const Tensor& p, Generator* generator) {
  if (!p.defined()) throw ValueError("bernoulli: the tensor of probabilities is undefined");
  const Tensor* inputs[] = {&p};
  return draw({OpId::bernoulli, inputs, {}}, generator);
}

/// bernoulli reads: params[0] the probability, when there is no input that holds it.
Tensor bernoulli(const Dims& shape, double p, DType dtype, Generator* generator) {
  return draw(OpId::bernoulli, shape, p, 0.0, false, dtype, generator);
}

std::vector<OutputSpec> infer_random(const OpCall& call) {
  const char* who = public_name(call);
  switch (call.op) {
    case OpId::random_uniform:
      check_uniform(who, call.attrs);
      break;
    case OpId::random_normal:
      check_normal(who, call.attrs);
      break;
    case OpId::random_int:
      check_int(who, call.attrs);
      break;
    default:
      check_perm(who, call.attrs);
      break;
  }
  return {{call.attrs.dims[0], call.attrs.dtype}};
}

std::vector<OutputSpec> infer_bernoulli(const OpCall& call) {
  if (call.inputs.empty()) {
    const double p = call.attrs.params[0];
    if (!(p >= 0 && p <= 1)) throw_not_probability(p, "");
    return {{call.attrs.dims[0], call.attrs.dtype}};
  }
  const Tensor& p = *call.inputs[0];
  if (!is_floating(p.dtype())) {
    throw DTypeError(message("bernoulli: probabilities are floats, not ", describe(p)));
  }
  if (p.numel() != 0) {
    for (const Tensor& end : {amin(p), amax(p)}) {
      const double value = end.item<double>();
      if (!(value >= 0 && value <= 1)) throw_not_probability(value, " in " + describe(p));
    }
  }
  return {{p.shape(), p.dtype()}};
}

}  // namespace baregrad

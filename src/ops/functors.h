// The elementwise bodies, written once, one struct per elementwise row of ops.def.
//
// A body is generic over a value type V: Scalar<T> (ops/scalar_math.h) or a SIMD vector
// (backends/cpu/simd/vec.h). V offers operators; comparisons, which give masks that know & | ^ and
// !; V::constant(double), V::select(mask, yes, no); and functions by their names, as V::exp(x). An
// activation that V computes by itself is taken from there, the formula here serves the others.
#pragma once

#include "ops/scalar_math.h"

namespace baregrad::functors {

/// Float results are approximations: instruction sets may differ in the last bits, and the
/// reference computes float32 in double.
struct Approximate {};
/// Integer results have the same bits whether the integers are signed or not.
struct Modular {};
/// Computed one number at a time, or nearly so, on every machine.
struct Serial {};
/// Moves values without looking at them, whatever their type.
struct Copying {};

// Functors with parameters are built from the op's numbers (backends/cpu/abi.h).

#define BG_BY_NAME(name)                \
  struct name : Approximate {           \
    template <class V>                  \
    BG_INLINE V operator()(V x) const { \
      return V::name(x);                \
    }                                   \
  };
BG_BY_NAME(exp)
BG_BY_NAME(exp2)
BG_BY_NAME(expm1)
BG_BY_NAME(log)
BG_BY_NAME(log2)
BG_BY_NAME(log10)
BG_BY_NAME(log1p)
BG_BY_NAME(sin)
BG_BY_NAME(cos)
BG_BY_NAME(tan)
BG_BY_NAME(asin)
BG_BY_NAME(acos)
BG_BY_NAME(atan)
BG_BY_NAME(sinh)
BG_BY_NAME(cosh)
BG_BY_NAME(tanh)
BG_BY_NAME(asinh)
BG_BY_NAME(acosh)
BG_BY_NAME(atanh)
BG_BY_NAME(erf)
#undef BG_BY_NAME

struct abs {
  template <class V>
  BG_INLINE V operator()(V x) const {
    return V::abs(x);
  }
};

struct negative : Modular {
  template <class V>
  BG_INLINE V operator()(V x) const {
    return -x;
  }
};

struct sign {
  template <class V>
  BG_INLINE V operator()(V x) const {
    const V zero = V::constant(0), one = V::constant(1);
    const V ordered = V::select(x > zero, one, zero) - V::select(x < zero, one, zero);
    return V::select(V::is_nan(x), x, ordered);
  }
};

struct square : Modular {
  template <class V>
  BG_INLINE V operator()(V x) const {
    return x * x;
  }
};

// Integers are their own floor, ceil, round and trunc.
struct floor : Modular {
  template <class V>
  BG_INLINE V operator()(V x) const {
    return V::floor(x);
  }
};

struct ceil : Modular {
  template <class V>
  BG_INLINE V operator()(V x) const {
    return V::ceil(x);
  }
};

struct round : Modular {
  template <class V>
  BG_INLINE V operator()(V x) const {
    return V::round(x);
  }
};

struct trunc : Modular {
  template <class V>
  BG_INLINE V operator()(V x) const {
    return V::trunc(x);
  }
};

struct relu {
  template <class V>
  BG_INLINE V operator()(V x) const {
    const V zero = V::constant(0);
    return V::select(x <= zero, zero, x);
  }
};

struct positive : Copying {
  template <class V>
  BG_INLINE V operator()(V x) const {
    return x;
  }
};

struct sqrt {
  template <class V>
  BG_INLINE V operator()(V x) const {
    return V::sqrt(x);
  }
};

struct rsqrt {
  template <class V>
  BG_INLINE V operator()(V x) const {
    return V::constant(1) / V::sqrt(x);
  }
};

struct reciprocal {
  template <class V>
  BG_INLINE V operator()(V x) const {
    return V::constant(1) / x;
  }
};

struct sigmoid : Approximate {
  template <class V>
  BG_INLINE V operator()(V x) const {
    if constexpr (requires { V::sigmoid(x); }) {
      return V::sigmoid(x);
    } else {
      // exp of a negative number alone: no overflow, and full precision in the lower tail.
      const V one = V::constant(1), e = V::exp(-V::abs(x));
      return V::select(x < V::constant(0), e, one) / (one + e);
    }
  }
};

struct leaky_relu {
  double slope;
  BG_INLINE explicit leaky_relu(const double* params) : slope(params[0]) {}

  template <class V>
  BG_INLINE V operator()(V x) const {
    return V::select(x > V::constant(0), x, V::constant(slope) * x);
  }
};

struct elu : Approximate {
  double alpha;
  BG_INLINE explicit elu(const double* params) : alpha(params[0]) {}

  template <class V>
  BG_INLINE V operator()(V x) const {
    return V::select(x > V::constant(0), x, V::constant(alpha) * V::expm1(x));
  }
};

struct gelu : Approximate {
  template <class V>
  BG_INLINE V operator()(V x) const {
    if constexpr (requires { V::gelu(x); }) {
      return V::gelu(x);
    } else {
      // Phi(x) = erfc(-x / sqrt 2) / 2 keeps its precision where 1 + erf would cancel.
      return V::constant(0.5) * x * V::erfc(x * V::constant(-0.70710678118654752440));
    }
  }
};

struct gelu_tanh : Approximate {
  template <class V>
  BG_INLINE V operator()(V x) const {
    if constexpr (requires { V::gelu_tanh(x); }) {
      return V::gelu_tanh(x);
    } else {
      // (1 + tanh u) / 2 = sigmoid(2 u), which does not cancel.
      const V inner = x + V::constant(0.044715) * x * x * x;
      return x * sigmoid{}(V::constant(1.59576912160573071176) * inner);
    }
  }
};

struct silu : Approximate {
  template <class V>
  BG_INLINE V operator()(V x) const {
    if constexpr (requires { V::silu(x); }) {
      return V::silu(x);
    } else {
      return x * sigmoid{}(x);
    }
  }
};

struct mish : Approximate {
  template <class V>
  BG_INLINE V operator()(V x) const {
    if constexpr (requires { V::mish(x); }) {
      return V::mish(x);
    } else {
      // tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2) for e = exp(x); 1 beyond 40.
      const V two = V::constant(2), end = V::constant(40);
      const V e = V::exp(V::select(x > end, end, x));
      const V n = e * (e + two);
      return x * (n / (n + two));
    }
  }
};

struct softplus : Approximate {
  double beta, threshold;
  BG_INLINE explicit softplus(const double* params) : beta(params[0]), threshold(params[1]) {}

  template <class V>
  BG_INLINE V operator()(V x) const {
    if constexpr (requires { V::softplus(x, beta, threshold); }) {
      return V::softplus(x, beta, threshold);
    } else {
      const V scaled = V::constant(beta) * x;
      const V soft = V::log1p(V::exp(scaled)) / V::constant(beta);
      return V::select(scaled > V::constant(threshold), x, soft);
    }
  }
};

struct maximum {
  template <class V>
  BG_INLINE V operator()(V a, V b) const {
    return V::select((a >= b) | V::is_nan(a), a, b);
  }
};

struct minimum {
  template <class V>
  BG_INLINE V operator()(V a, V b) const {
    return V::select((a <= b) | V::is_nan(a), a, b);
  }
};

struct clip {
  template <class V>
  BG_INLINE V operator()(V x, V low, V high) const {
    return minimum{}(maximum{}(x, low), high);
  }
};

struct hardswish {
  template <class V>
  BG_INLINE V operator()(V x) const {
    const V three = V::constant(3), six = V::constant(6);
    return x * clip{}(x + three, V::constant(0), six) / six;
  }
};

struct bitwise_invert : Modular {
  template <class V>
  BG_INLINE V operator()(V x) const {
    return ~x;
  }
};

struct isnan : Modular {
  template <class V>
  BG_INLINE auto operator()(V x) const {
    return V::is_nan(x);
  }
};

struct isinf : Modular {
  template <class V>
  BG_INLINE auto operator()(V x) const {
    return V::is_inf(x);
  }
};

struct isfinite : Modular {
  template <class V>
  BG_INLINE auto operator()(V x) const {
    return V::is_finite(x);
  }
};

struct signbit {
  template <class V>
  BG_INLINE auto operator()(V x) const {
    return V::sign_bit(x);
  }
};

struct logical_not : Modular {
  template <class V>
  BG_INLINE auto operator()(V x) const {
    return x == V::constant(0);
  }
};

struct add : Modular {
  template <class V>
  BG_INLINE V operator()(V a, V b) const {
    return a + b;
  }
};

struct subtract : Modular {
  template <class V>
  BG_INLINE V operator()(V a, V b) const {
    return a - b;
  }
};

struct multiply : Modular {
  template <class V>
  BG_INLINE V operator()(V a, V b) const {
    return a * b;
  }
};

struct divide {
  template <class V>
  BG_INLINE V operator()(V a, V b) const {
    return a / b;
  }
};

// Floats follow Python: the remainder has the sign of the divisor, and the quotient is made from
// it, so that the two agree even where a / b rounds up to the next integer.
struct remainder : Serial {
  template <class V>
  BG_INLINE V operator()(V a, V b) const {
    if constexpr (V::kFloating) {
      const V zero = V::constant(0), rest = V::fmod(a, b);
      const V moved = V::select((b < zero) ^ (rest < zero), rest + b, rest);
      const V signed_zero = V::copysign(zero, b);
      return V::select(rest == zero, signed_zero, moved);
    } else {
      return V::remainder(a, b);
    }
  }
};

struct floor_divide : Serial {
  template <class V>
  BG_INLINE V operator()(V a, V b) const {
    if constexpr (V::kFloating) {
      const V zero = V::constant(0), one = V::constant(1), rest = V::fmod(a, b);
      const V exact = (a - rest) / b;
      const auto differ = (rest != zero) & ((b < zero) ^ (rest < zero));
      const V quotient = V::select(differ, exact - one, exact);
      const V below = V::floor(quotient);
      const V nearest = V::select(quotient - below > V::constant(0.5), below + one, below);
      const V ratio = a / b;
      const V whole = V::select(quotient == zero, V::copysign(zero, ratio), nearest);
      return V::select(b == zero, ratio, whole);
    } else {
      return V::floor_divide(a, b);
    }
  }
};

struct pow : Approximate, Serial {
  template <class V>
  BG_INLINE V operator()(V a, V b) const {
    return V::pow(a, b);
  }
};

struct atan2 : Approximate {
  template <class V>
  BG_INLINE V operator()(V y, V x) const {
    return V::atan2(y, x);
  }
};

struct hypot : Approximate {
  template <class V>
  BG_INLINE V operator()(V x, V y) const {
    return V::hypot(x, y);
  }
};

struct copysign {
  template <class V>
  BG_INLINE V operator()(V x, V y) const {
    return V::copysign(x, y);
  }
};

struct logaddexp : Approximate {
  template <class V>
  BG_INLINE V operator()(V x, V y) const {
    if constexpr (requires { V::logaddexp(x, y); }) {
      return V::logaddexp(x, y);
    } else {
      // Equal infinities have no difference: their result is the operand itself.
      const V difference = V::select(x == y, V::constant(0), V::abs(x - y));
      return maximum{}(x, y) + V::log1p(V::exp(-difference));
    }
  }
};

// Gradients of activations in one pass: g is what comes back, y what the activation gave.
struct relu_backward {
  template <class V>
  BG_INLINE V operator()(V g, V y) const {
    const V zero = V::constant(0);
    return V::select(y <= zero, zero, g);
  }
};

struct tanh_backward {
  template <class V>
  BG_INLINE V operator()(V g, V y) const {
    return g * (V::constant(1) - y * y);
  }
};

struct sigmoid_backward {
  template <class V>
  BG_INLINE V operator()(V g, V y) const {
    return g * (y * (V::constant(1) - y));
  }
};

struct nextafter {
  template <class V>
  BG_INLINE V operator()(V x, V y) const {
    return V::nextafter(x, y);
  }
};

struct bitwise_and : Modular {
  template <class V>
  BG_INLINE V operator()(V a, V b) const {
    return a & b;
  }
};

struct bitwise_or : Modular {
  template <class V>
  BG_INLINE V operator()(V a, V b) const {
    return a | b;
  }
};

struct bitwise_xor : Modular {
  template <class V>
  BG_INLINE V operator()(V a, V b) const {
    return a ^ b;
  }
};

struct bitwise_left_shift : Modular {
  template <class V>
  BG_INLINE V operator()(V a, V b) const {
    return a << b;
  }
};

struct bitwise_right_shift {
  template <class V>
  BG_INLINE V operator()(V a, V b) const {
    return a >> b;
  }
};

struct equal : Modular {
  template <class V>
  BG_INLINE auto operator()(V a, V b) const {
    return a == b;
  }
};

struct not_equal : Modular {
  template <class V>
  BG_INLINE auto operator()(V a, V b) const {
    return a != b;
  }
};

struct less {
  template <class V>
  BG_INLINE auto operator()(V a, V b) const {
    return a < b;
  }
};

struct less_equal {
  template <class V>
  BG_INLINE auto operator()(V a, V b) const {
    return a <= b;
  }
};

struct greater {
  template <class V>
  BG_INLINE auto operator()(V a, V b) const {
    return a > b;
  }
};

struct greater_equal {
  template <class V>
  BG_INLINE auto operator()(V a, V b) const {
    return a >= b;
  }
};

// NaN is non-zero, hence true.
struct logical_and : Modular {
  template <class V>
  BG_INLINE auto operator()(V a, V b) const {
    const V zero = V::constant(0);
    return (a != zero) & (b != zero);
  }
};

struct logical_or : Modular {
  template <class V>
  BG_INLINE auto operator()(V a, V b) const {
    const V zero = V::constant(0);
    return (a != zero) | (b != zero);
  }
};

struct logical_xor : Modular {
  template <class V>
  BG_INLINE auto operator()(V a, V b) const {
    const V zero = V::constant(0);
    return (a != zero) ^ (b != zero);
  }
};

struct where : Copying {
  template <class M, class V>
  BG_INLINE V operator()(M condition, V x, V y) const {
    return V::select(condition, x, y);
  }
};

struct lerp {
  template <class V>
  BG_INLINE V operator()(V x, V y, V weight) const {
    return x + weight * (y - x);
  }
};

struct addcmul : Modular {
  double value;
  std::uint64_t whole;  // the same for integers, modulo 2^64
  BG_INLINE explicit addcmul(const double* params)
      : value(params[0]),
        whole(value < 0 ? static_cast<std::uint64_t>(saturating_trunc<std::int64_t>(value))
                        : saturating_trunc<std::uint64_t>(value)) {}

  template <class V>
  BG_INLINE V operator()(V x, V y, V z) const {
    if constexpr (V::kFloating)
      return x + V::constant(value) * y * z;
    else
      return x + V::modular(whole) * y * z;
  }
};

}  // namespace baregrad::functors

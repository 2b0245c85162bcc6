// Rows of the binary and ternary ops and comparisons.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/op_table/op_table.h"
#include "tests/op_table/truth.h"

namespace baregrad::op_table {

namespace {

using BinaryFn = Tensor (*)(const Operand&, const Operand&);
using BinaryInto = const Tensor& (*)(const Tensor&, const Operand&);

OpRow binary_base(OpId op, BinaryFn fn, BinaryInto into, const std::vector<DType>& dtypes) {
  OpRow row;
  row.op = op;
  row.call = [fn](const Inputs& in) { return std::vector<Tensor>{fn(in[0], in[1])}; };
  if (into != nullptr) row.in_place = [into](const Inputs& in) { into(in[0], in[1]); };
  row.inputs = [](Rng& rng, DType dtype, const Dims& shape) {
    return Inputs{sample(rng, dtype, shape), sample(rng, dtype, shape)};
  };
  row.dtypes = dtypes;
  row.tensors = 2;
  row.elementwise = true;
  return row;
}

template <class F, class I>
OpRow exact_binary(OpId op, BinaryFn fn, BinaryInto into, const std::vector<DType>& dtypes, F f,
                   I i) {
  OpRow row = binary_base(op, fn, into, dtypes);
  row.truth = binary_truth(f);
  row.truth.integer = [i](const Int128* x, int bits, bool sign) {
    return i(x[0], x[1], bits, sign);
  };
  row.exact = true;
  return row;
}

/// For bitwise ops, which are not defined for floats.
template <class I>
OpRow bits(OpId op, BinaryFn fn, BinaryInto into, const std::vector<DType>& dtypes, I i) {
  return exact_binary(
      op, fn, into, dtypes, [](auto x, auto) { return x; }, i);
}

template <class F>
OpRow close_binary(OpId op, BinaryFn fn, BinaryInto into, F f, int ulp) {
  OpRow row = binary_base(op, fn, into, all_dtypes());
  row.truth = binary_truth(f);
  row.ulp32 = ulp;
  return row;
}

template <class F>
OpRow compare(OpId op, BinaryFn fn, F f) {
  return exact_binary(
      op, fn, nullptr, all_dtypes(), [f](auto x, auto y) { return decltype(x)(f(x, y)); },
      [f](Int128 x, Int128 y, int, bool) { return Int128(f(x, y)); });
}

// Python's // and %: the quotient is floored, the remainder has the divisor's sign.
template <class T>
T python_mod(T x, T y) {
  const T m = std::fmod(x, y);
  if (m == 0) return std::copysign(T(0), y);
  return (m < 0) != (y < 0) ? m + y : m;
}
template <class T>
T python_floor_div(T x, T y) {
  if (y == 0) return x / y;
  const T m = std::fmod(x, y);
  T quotient = (x - m) / y;
  if (m != 0 && (m < 0) != (y < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(T(0), x / y);
  const T floored = std::floor(quotient);
  return quotient - floored > T(0.5) ? floored + 1 : floored;
}
Int128 floor_div(Int128 x, Int128 y) {
  const Int128 q = x / y;
  return x % y != 0 && (x < 0) != (y < 0) ? q - 1 : q;
}

/// Divisors and exponents for which the op is defined.
OpRow with_second(OpRow row, std::function<void(Tensor&)> mend) {
  row.inputs = [mend](Rng& rng, DType dtype, const Dims& shape) {
    Inputs in{sample(rng, dtype, shape), sample(rng, dtype, shape)};
    if (!is_floating(dtype)) mend(in[1]);
    return in;
  };
  return row;
}

/// Integers of `t` that fail `keep` become 2.
void replace(Tensor& t, const std::function<bool(const Scalar&)>& keep) {
  const Tensor here = t.cpu();
  auto* at = static_cast<char*>(here.data_ptr());
  for (std::int64_t i = 0; i < t.numel(); ++i, at += itemsize(t.dtype())) {
    if (!keep(load_scalar(at, t.dtype()))) store_scalar(2, t.dtype(), at, "replace");
  }
  t = here.to(t.device());
}

Int128 power(Int128 x, Int128 y, int width) {
  // Modulo 2^width in every step: the exact power has too many digits.
  const Int128 mask = (Int128(1) << width) - 1;
  Int128 result = 1;
  Int128 factor = x & mask;
  for (; y > 0; y >>= 1) {
    if ((y & 1) != 0) result = times(result, factor) & mask;
    factor = times(factor, factor) & mask;
  }
  return result;
}

template <class T>
T log_add_exp(T x, T y) {
  if (std::isnan(x) || std::isnan(y)) return T(NAN);
  const T high = x > y ? x : y;
  const T low = x > y ? y : x;
  if (std::isinf(high)) return high;
  return high + std::log1p(std::exp(low - high));
}

template <class T>
bool any_nan(T x, T y) {
  return std::isnan(static_cast<long double>(x)) || std::isnan(static_cast<long double>(y));
}

/// nextafter by the spacing of values: in [2^e, 2^(e+1)) they lie 2^(e - mantissa) apart; below
/// 2^least the spacing is that of 2^least.
double half_step(double x, double y, int mantissa, int least) {
  if (any_nan(x, y)) return NAN;
  if (x == y) return y;
  const double largest = std::ldexp(2 - std::ldexp(1, -mantissa), least == -14 ? 15 : 127);
  if (std::isinf(x)) return std::copysign(largest, x);
  if (x == 0) return std::copysign(std::ldexp(1, least - mantissa), y);
  const double size = std::fabs(x);
  const bool outwards = (y > x) == (x > 0);
  int exponent = std::ilogb(size);
  // Below a power of two, towards zero, the spacing is finer.
  if (!outwards && std::ldexp(1, exponent) == size) --exponent;
  const double step = std::ldexp(1, std::max(exponent, least) - mantissa);
  const double next = outwards ? size + step : size - step;
  return std::copysign(next > largest ? INFINITY : next, x);
}

}  // namespace

std::vector<OpRow> binary_rows() {
  const auto& num = numeric_dtypes();
  const auto& all = all_dtypes();
  std::vector<DType> ints_bool = integer_dtypes();
  ints_bool.insert(ints_bool.begin(), bool_);
  std::vector<OpRow> r;
#define ROW(name) OpId::name, name, name##_
  r.push_back(exact_binary(
      ROW(add), all, [](auto x, auto y) { return x + y; },
      [](Int128 x, Int128 y, int width, bool) { return width == 1 ? x | y : x + y; }));
  r.push_back(exact_binary(
      ROW(subtract), num, [](auto x, auto y) { return x - y; },
      [](Int128 x, Int128 y, int, bool) { return x - y; }));
  r.push_back(exact_binary(
      ROW(multiply), all, [](auto x, auto y) { return x * y; },
      [](Int128 x, Int128 y, int, bool) { return times(x, y); }));
  r.push_back(close_binary(
      ROW(divide), [](auto x, auto y) { return x / y; }, 0));
  r.push_back(
      with_second(exact_binary(
                      ROW(floor_divide), num, [](auto x, auto y) { return python_floor_div(x, y); },
                      [](Int128 x, Int128 y, int, bool) { return floor_div(x, y); }),
                  [](Tensor& t) { replace(t, [](const Scalar& s) { return s.to_bool(); }); }));
  r.push_back(
      with_second(exact_binary(
                      ROW(remainder), num, [](auto x, auto y) { return python_mod(x, y); },
                      [](Int128 x, Int128 y, int, bool) { return x - floor_div(x, y) * y; }),
                  [](Tensor& t) { replace(t, [](const Scalar& s) { return s.to_bool(); }); }));
  {
    OpRow row = with_second(close_binary(
                                ROW(pow), [](auto x, auto y) { return std::pow(x, y); }, 2),
                            [](Tensor& t) {
                              replace(t, [&](const Scalar& s) {
                                return !is_signed_int(t.dtype()) || s.to_int64() >= 0;
                              });
                            });
    row.dtypes = num;
    row.truth.integer = [](const Int128* x, int width, bool) { return power(x[0], x[1], width); };
    r.push_back(row);
  }
  r.push_back(exact_binary(
      ROW(maximum), all,
      [](auto x, auto y) { return any_nan(x, y) ? decltype(x)(NAN)
                                  : x > y       ? x
                                                : y; },
      [](Int128 x, Int128 y, int, bool) { return x > y ? x : y; }));
  r.push_back(exact_binary(
      ROW(minimum), all,
      [](auto x, auto y) { return any_nan(x, y) ? decltype(x)(NAN)
                                  : x < y       ? x
                                                : y; },
      [](Int128 x, Int128 y, int, bool) { return x < y ? x : y; }));
  r.push_back(close_binary(
      ROW(atan2), [](auto x, auto y) { return std::atan2(x, y); }, 4));
  r.push_back(close_binary(
      ROW(hypot), [](auto x, auto y) { return std::hypot(x, y); }, 2));
  r.push_back(close_binary(
      ROW(copysign), [](auto x, auto y) { return std::copysign(x, y); }, 0));
  r.push_back(close_binary(
      ROW(logaddexp), [](auto x, auto y) { return log_add_exp(x, y); }, 4));
  r.back().scale = [](const double* x) { return std::fmax(std::fabs(x[0]), std::fabs(x[1])) + 1; };
  r.push_back(close_binary(
      ROW(relu_backward), [](auto g, auto y) { return y <= 0 ? decltype(g)(0) : g; }, 0));
  // Plain arithmetic: the same in every type, including intermediate overflow.
  r.push_back(close_binary(
      ROW(tanh_backward), [](auto g, auto y) { return g * (1 - y * y); }, 0));
  r.back().exact = true;
  r.push_back(close_binary(
      ROW(sigmoid_backward), [](auto g, auto y) { return g * (y * (1 - y)); }, 0));
  r.back().exact = true;
  {
    OpRow row = close_binary(
        ROW(nextafter), [](auto x, auto y) { return std::nextafter(x, y); }, 0);
    row.truth.half = [](const double* x, int mantissa, int least) {
      return half_step(x[0], x[1], mantissa, least);
    };
    row.exact = true;
    r.push_back(row);
  }
  r.push_back(
      bits(ROW(bitwise_and), ints_bool, [](Int128 x, Int128 y, int, bool) { return x & y; }));
  r.push_back(
      bits(ROW(bitwise_or), ints_bool, [](Int128 x, Int128 y, int, bool) { return x | y; }));
  r.push_back(
      bits(ROW(bitwise_xor), ints_bool, [](Int128 x, Int128 y, int, bool) { return x ^ y; }));
  r.push_back(
      bits(ROW(bitwise_left_shift), integer_dtypes(), [](Int128 x, Int128 y, int width, bool) {
        return y < 0 || y >= width ? Int128(0) : times(x, Int128(1) << static_cast<int>(y));
      }));
  r.push_back(
      bits(ROW(bitwise_right_shift), integer_dtypes(), [](Int128 x, Int128 y, int width, bool) {
        if (y < 0 || y >= width) return x < 0 ? Int128(-1) : Int128(0);
        return x >> static_cast<int>(y);
      }));
#undef ROW
  r.push_back(compare(OpId::equal, equal, [](auto x, auto y) { return x == y; }));
  r.push_back(compare(OpId::not_equal, not_equal, [](auto x, auto y) { return x != y; }));
  r.push_back(compare(OpId::less, less, [](auto x, auto y) { return x < y; }));
  r.push_back(compare(OpId::less_equal, less_equal, [](auto x, auto y) { return x <= y; }));
  r.push_back(compare(OpId::greater, greater, [](auto x, auto y) { return x > y; }));
  r.push_back(compare(OpId::greater_equal, greater_equal, [](auto x, auto y) { return x >= y; }));
  r.push_back(
      compare(OpId::logical_and, logical_and, [](auto x, auto y) { return x != 0 && y != 0; }));
  r.push_back(
      compare(OpId::logical_or, logical_or, [](auto x, auto y) { return x != 0 || y != 0; }));
  r.push_back(
      compare(OpId::logical_xor, logical_xor, [](auto x, auto y) { return (x != 0) != (y != 0); }));

  const auto three = [](Rng& rng, DType dtype, const Dims& shape) {
    return Inputs{sample(rng, dtype, shape), sample(rng, dtype, shape), sample(rng, dtype, shape)};
  };
  OpRow t;
  t.tensors = 3;
  t.elementwise = true;
  t.exact = true;
  t.inputs = three;

  t.op = OpId::where;
  t.dtypes = all;
  t.call = [](const Inputs& in) { return std::vector<Tensor>{where(in[0], in[1], in[2])}; };
  t.truth = ternary_truth([](auto c, auto x, auto y) { return c != 0 ? x : y; });
  t.truth.integer = [](const Int128* x, int, bool) { return x[0] != 0 ? x[1] : x[2]; };
  r.push_back(t);

  t.op = OpId::clip;
  t.dtypes = num;
  t.call = [](const Inputs& in) { return std::vector<Tensor>{clip(in[0], in[1], in[2])}; };
  t.in_place = [](const Inputs& in) { clip_(in[0], in[1], in[2]); };
  // As in NumPy: min(max(x, low), high), with NaN from any operand.
  t.truth = ternary_truth([](auto x, auto low, auto high) {
    using T = decltype(x);
    if (any_nan(x, low) || any_nan(x, high)) return T(NAN);
    const T raised = x > low ? x : low;
    return raised < high ? raised : high;
  });
  t.truth.integer = [](const Int128* x, int, bool) {
    const Int128 raised = x[0] > x[1] ? x[0] : x[1];
    return raised < x[2] ? raised : x[2];
  };
  r.push_back(t);

  t.op = OpId::addcmul;
  t.call = [](const Inputs& in) { return std::vector<Tensor>{addcmul(in[0], in[1], in[2], 2.0)}; };
  t.in_place = [](const Inputs& in) { addcmul_(in[0], in[1], in[2], 2.0); };
  t.truth = ternary_truth([](auto x, auto y, auto z) { return x + 2 * y * z; });
  t.truth.integer = [](const Int128* x, int width, bool) {
    const Int128 mask = (Int128(1) << width) - 1;
    return x[0] + 2 * (times(x[1], x[2]) & mask);
  };
  t.exact = false;  // the products and the sum each round
  t.ulp32 = 2;
  t.scale = [](const double* x) { return std::fabs(x[0]) + 2 * std::fabs(x[1] * x[2]); };
  r.push_back(t);

  t.op = OpId::lerp;
  t.dtypes = all;
  t.call = [](const Inputs& in) { return std::vector<Tensor>{lerp(in[0], in[1], in[2])}; };
  t.in_place = [](const Inputs& in) { lerp_(in[0], in[1], in[2]); };
  t.truth = ternary_truth([](auto x, auto y, auto w) { return x + w * (y - x); });
  t.scale = [](const double* x) {
    return std::fabs(x[0]) + std::fabs(x[2]) * (std::fabs(x[0]) + std::fabs(x[1]));
  };
  r.push_back(t);
  return r;
}

}  // namespace baregrad::op_table

// Rows of the unary ops and predicates.
#include <cmath>
#include <limits>
#include <type_traits>

#include "tests/op_table/op_table.h"
#include "tests/op_table/truth.h"

namespace baregrad::op_table {

namespace {

using UnaryFn = Tensor (*)(const Tensor&);
using UnaryInto = const Tensor& (*)(const Tensor&);

OpRow unary_base(OpId op, UnaryFn fn, UnaryInto into, const std::vector<DType>& dtypes, double low,
                 double high) {
  OpRow row;
  row.op = op;
  row.call = [fn](const Inputs& in) { return std::vector<Tensor>{fn(in[0])}; };
  if (into != nullptr) row.in_place = [into](const Inputs& in) { into(in[0]); };
  row.inputs = [low, high](Rng& rng, DType dtype, const Dims& shape) {
    return Inputs{sample(rng, dtype, shape, low, high)};
  };
  row.dtypes = dtypes;
  row.elementwise = true;
  row.low = low;
  row.high = high;
  return row;
}

/// Without any error; integers by the second function.
template <class F, class I>
OpRow exact_unary(OpId op, UnaryFn fn, UnaryInto into, const std::vector<DType>& dtypes, F f, I i) {
  OpRow row = unary_base(op, fn, into, dtypes, -100.0, 100.0);
  row.truth = unary_truth(f);
  if constexpr (!std::is_same_v<I, std::nullptr_t>) {
    row.truth.integer = [i](const Int128* x, int bits, bool sign) { return i(x[0], bits, sign); };
  }
  row.exact = true;
  return row;
}

/// Within `ulp` of the correctly rounded result; integers and bool are taken as float32.
template <class F>
OpRow close_unary(OpId op, UnaryFn fn, UnaryInto into, F f, double low, double high, int ulp) {
  OpRow row = unary_base(op, fn, into, all_dtypes(), low, high);
  row.truth = unary_truth(f);
  row.ulp32 = ulp;
  return row;
}

Int128 same(Int128 x, int, bool) { return x; }

template <class T>
T sigmoid_of(T x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}
template <class T>
T softplus_of(T x) {
  return x > 20 ? x : std::log1p(std::exp(x));
}

}  // namespace

std::vector<OpRow> unary_rows() {
  const auto& num = numeric_dtypes();
  const auto& all = all_dtypes();
  std::vector<OpRow> r;
#define ROW(name) OpId::name, static_cast<UnaryFn>(name), static_cast<UnaryInto>(name##_)
  r.push_back(exact_unary(
      ROW(abs), num, [](auto x) { return std::fabs(x); },
      [](Int128 x, int, bool) { return x < 0 ? -x : x; }));
  r.push_back(exact_unary(
      ROW(negative), num, [](auto x) { return -x; }, [](Int128 x, int, bool) { return -x; }));
  r.push_back(exact_unary(
      ROW(positive), num, [](auto x) { return x; }, same));
  r.push_back(exact_unary(
      ROW(sign), num, [](auto x) { return std::isnan(x) ? x : decltype(x)((x > 0) - (x < 0)); },
      [](Int128 x, int, bool) { return Int128((x > 0) - (x < 0)); }));
  r.push_back(exact_unary(
      ROW(square), num, [](auto x) { return x * x; },
      [](Int128 x, int, bool) { return times(x, x); }));
  r.push_back(exact_unary(
      ROW(floor), num, [](auto x) { return std::floor(x); }, same));
  r.push_back(exact_unary(
      ROW(ceil), num, [](auto x) { return std::ceil(x); }, same));
  r.push_back(exact_unary(
      ROW(round), num, [](auto x) { return std::nearbyint(x); }, same));
  r.push_back(exact_unary(
      ROW(trunc), num, [](auto x) { return std::trunc(x); }, same));
  r.push_back(exact_unary(
      ROW(relu), num, [](auto x) { return x > 0 || std::isnan(x) ? x : decltype(x)(0); },
      [](Int128 x, int, bool) { return x > 0 ? x : Int128(0); }));
  r.push_back(exact_unary(
      ROW(bitwise_invert), {bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64},
      [](auto x) { return x; }, [](Int128 x, int bits, bool) { return bits == 1 ? 1 - x : ~x; }));
  r.push_back(close_unary(
      ROW(sqrt), [](auto x) { return std::sqrt(x); }, 0, 100, 0));
  r.push_back(close_unary(
      ROW(rsqrt), [](auto x) { return 1 / std::sqrt(x); }, 0.01, 100, 1));
  r.push_back(close_unary(
      ROW(reciprocal), [](auto x) { return 1 / x; }, -100, 100, 0));
  r.push_back(close_unary(
      ROW(exp), [](auto x) { return std::exp(x); }, -110, 95, 1));
  r.push_back(close_unary(
      ROW(exp2), [](auto x) { return std::exp2(x); }, -155, 130, 2));
  r.push_back(close_unary(
      ROW(expm1), [](auto x) { return std::expm1(x); }, -20, 20, 2));
  r.push_back(close_unary(
      ROW(log), [](auto x) { return std::log(x); }, 0, 10, 1));
  r.push_back(close_unary(
      ROW(log2), [](auto x) { return std::log2(x); }, 0, 10, 2));
  r.push_back(close_unary(
      ROW(log10), [](auto x) { return std::log10(x); }, 0, 10, 2));
  r.push_back(close_unary(
      ROW(log1p), [](auto x) { return std::log1p(x); }, -1, 10, 2));
  r.push_back(close_unary(
      ROW(sin), [](auto x) { return std::sin(x); }, -1000, 1000, 2));
  r.push_back(close_unary(
      ROW(cos), [](auto x) { return std::cos(x); }, -1000, 1000, 2));
  r.push_back(close_unary(
      ROW(tan), [](auto x) { return std::tan(x); }, -100, 100, 4));
  r.push_back(close_unary(
      ROW(asin), [](auto x) { return std::asin(x); }, -1, 1, 4));
  r.push_back(close_unary(
      ROW(acos), [](auto x) { return std::acos(x); }, -1, 1, 4));
  r.push_back(close_unary(
      ROW(atan), [](auto x) { return std::atan(x); }, -50, 50, 4));
  r.push_back(close_unary(
      ROW(sinh), [](auto x) { return std::sinh(x); }, -90, 90, 4));
  r.push_back(close_unary(
      ROW(cosh), [](auto x) { return std::cosh(x); }, -90, 90, 4));
  r.push_back(close_unary(
      ROW(tanh), [](auto x) { return std::tanh(x); }, -10, 10, 2));
  r.push_back(close_unary(
      ROW(asinh), [](auto x) { return std::asinh(x); }, -100, 100, 4));
  r.push_back(close_unary(
      ROW(acosh), [](auto x) { return std::acosh(x); }, 1, 100, 4));
  r.push_back(close_unary(
      ROW(atanh), [](auto x) { return std::atanh(x); }, -1, 1, 4));
  r.push_back(close_unary(
      ROW(erf), [](auto x) { return std::erf(x); }, -5, 5, 2));
  r.push_back(close_unary(
      ROW(sigmoid), [](auto x) { return sigmoid_of(x); }, -100, 100, 2));
  r.push_back(close_unary(
      ROW(silu), [](auto x) { return std::isinf(x) ? (x > 0 ? x : x * 0) : x * sigmoid_of(x); },
      -100, 100, 2));
  r.push_back(close_unary(
      ROW(gelu),
      [](auto x) {
        using T = decltype(x);
        if (std::isinf(x)) return x > 0 ? x : T(NAN);
        return x / 2 * std::erfc(-x / std::sqrt(T(2)));
      },
      -15, 10, 2));
  r.back().ulp64 = 300;  // in the tail, the error is that of x * x / 2 in an exponent
  r.push_back(close_unary(
      ROW(gelu_tanh),
      [](auto x) {
        using T = decltype(x);
        if (std::isinf(x)) return x > 0 ? x : T(NAN);
        const T u = std::sqrt(2 / std::acos(T(-1))) * (x + T(0.044715L) * x * x * x);
        return x * sigmoid_of(2 * u);
      },
      -6, 6, 4));
  r.back().ulp64 = 100;
  r.push_back(close_unary(
      ROW(mish),
      [](auto x) {
        using T = decltype(x);
        if (std::isinf(x)) return x > 0 ? x : T(NAN);
        return x * std::tanh(x > 40 ? x : std::log1p(std::exp(x)));
      },
      -60, 60, 4));
  r.push_back(close_unary(
      ROW(hardswish),
      [](auto x) {
        using T = decltype(x);
        const T sum = x + 3;
        return x * (sum < 0 ? T(0) : sum > 6 ? T(6) : sum) / 6;
      },
      -5, 5, 2));
#undef ROW
  r.push_back(close_unary(
      OpId::leaky_relu, [](const Tensor& x) { return leaky_relu(x, 0.125); },
      [](const Tensor& x) -> const Tensor& { return leaky_relu_(x, 0.125); },
      [](auto x) { return x > 0 ? x : x / 8; }, -50, 50, 0));
  r.push_back(close_unary(
      OpId::elu, [](const Tensor& x) { return elu(x, 0.5); },
      [](const Tensor& x) -> const Tensor& { return elu_(x, 0.5); },
      [](auto x) { return x > 0 ? x : std::expm1(x) / 2; }, -50, 50, 2));
  r.push_back(close_unary(
      OpId::softplus, [](const Tensor& x) { return softplus(x); },
      [](const Tensor& x) -> const Tensor& { return softplus_(x); },
      [](auto x) { return softplus_of(x); }, -100, 50, 4));
#define ROW(name) OpId::name, static_cast<UnaryFn>(name), nullptr, all
  const auto never = [](Int128, int, bool) { return Int128(0); };
  r.push_back(exact_unary(
      ROW(isnan), [](auto x) { return decltype(x)(std::isnan(x)); }, never));
  r.push_back(exact_unary(
      ROW(isinf), [](auto x) { return decltype(x)(std::isinf(x)); }, never));
  r.push_back(exact_unary(
      ROW(isfinite), [](auto x) { return decltype(x)(std::isfinite(x)); },
      [](Int128, int, bool) { return Int128(1); }));
  r.push_back(exact_unary(
      ROW(signbit), [](auto x) { return decltype(x)(std::signbit(x)); },
      [](Int128 x, int, bool) { return Int128(x < 0); }));
  r.push_back(exact_unary(
      ROW(logical_not), [](auto x) { return decltype(x)(x == 0); },
      [](Int128 x, int, bool) { return Int128(x == 0); }));
#undef ROW
  return r;
}

}  // namespace baregrad::op_table

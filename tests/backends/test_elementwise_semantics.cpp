// The semantics of elementwise ops, independent of their kernels: values computed by hand or by
// Python, and the formulas of ops.def in long double. The reference must pass this too.
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/table.h"
#include "tests/backends/kernel_values.h"
#include "tests/isas.h"

namespace baregrad::kernels {
namespace {

using test::kInf;
using test::kNan;

class ElementwiseSemantics : public testing::TestWithParam<Isa> {
 protected:
  /// The op on one element of each operand.
  template <class T>
  T apply(OpId op, std::vector<T> operands, std::vector<double> params = {}) const {
    const void* in[kMaxInputs] = {};
    for (std::size_t k = 0; k < operands.size(); ++k) in[k] = &operands[k];
    T out{};
    params.resize(2);
    const auto fn =
        table(GetParam()).elementwise[static_cast<int>(op)][static_cast<int>(dtype_of<T>)];
    fn(in, &out, 1, params.data(), 0);
    return out;
  }
  template <class T>
  int test(OpId op, std::vector<T> operands) const {
    const void* in[kMaxInputs] = {};
    for (std::size_t k = 0; k < operands.size(); ++k) in[k] = &operands[k];
    std::uint8_t out = 99;
    const auto fn =
        table(GetParam()).elementwise[static_cast<int>(op)][static_cast<int>(dtype_of<T>)];
    fn(in, &out, 1, nullptr, 0);
    return out;
  }
  int bools(OpId op, std::vector<std::uint8_t> operands) const {
    const void* in[kMaxInputs] = {};
    for (std::size_t k = 0; k < operands.size(); ++k) in[k] = &operands[k];
    std::uint8_t out = 99;
    table(GetParam())
        .elementwise[static_cast<int>(op)][static_cast<int>(DType::Bool)](in, &out, 1, nullptr, 0);
    return out;
  }
  template <class T>
  void expect_float(OpId op, std::vector<T> operands, double expected,
                    const std::vector<double>& params = {}) const {
    const T got = apply<T>(op, operands, params);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got)) << static_cast<int>(op) << ": " << got;
    } else {
      EXPECT_EQ(got, static_cast<T>(expected)) << static_cast<int>(op);
      EXPECT_EQ(std::signbit(got), std::signbit(expected)) << static_cast<int>(op) << ": " << got;
    }
  }
  /// In both float types.
  void expect_both(OpId op, const std::vector<double>& operands, double expected,
                   const std::vector<double>& params = {}) const {
    expect_float<double>(op, operands, expected, params);
    expect_float<float>(op, std::vector<float>(operands.begin(), operands.end()), expected, params);
  }
};

TEST_P(ElementwiseSemantics, NanAndZerosGoThrough) {
  for (const OpId op :
       {OpId::abs,  OpId::negative,  OpId::sign,       OpId::square,  OpId::floor,
        OpId::ceil, OpId::round,     OpId::trunc,      OpId::relu,    OpId::positive,
        OpId::sqrt, OpId::exp,       OpId::log,        OpId::sigmoid, OpId::gelu,
        OpId::tanh, OpId::hardswish, OpId::leaky_relu, OpId::elu,     OpId::softplus}) {
    expect_both(op, {kNan}, kNan, {1.0, 20.0});
  }
  for (const OpId op : {OpId::add, OpId::maximum, OpId::minimum, OpId::remainder,
                        OpId::floor_divide, OpId::nextafter, OpId::logaddexp}) {
    expect_both(op, {kNan, 1}, kNan);
    expect_both(op, {1, kNan}, kNan);
  }
  expect_both(OpId::clip, {kNan, 0, 1}, kNan);
  expect_both(OpId::clip, {0.5, kNan, 1}, kNan);
  expect_both(OpId::clip, {0.5, 0, kNan}, kNan);
  expect_both(OpId::clip, {5, 0, 1}, 1);
  expect_both(OpId::clip, {-5, 0, 1}, 0);
  expect_both(OpId::clip, {0.5, 2, 1}, 1);  // bounds in the wrong order: the upper one counts
  expect_both(OpId::relu, {-0.0}, 0.0);
  expect_both(OpId::relu, {-3}, 0.0);
  expect_both(OpId::relu, {kInf}, kInf);
  expect_both(OpId::sign, {-0.0}, 0.0);
  expect_both(OpId::sign, {-kInf}, -1);
  expect_both(OpId::abs, {-0.0}, 0.0);
  expect_both(OpId::negative, {0.0}, -0.0);
  expect_both(OpId::leaky_relu, {-4}, -1, {0.25, 0});
  expect_both(OpId::hardswish, {-3}, -0.0);
  expect_both(OpId::hardswish, {1}, 2.0 / 3.0);
  expect_both(OpId::hardswish, {9}, 9);
  expect_both(OpId::lerp, {1, 5, 0.25}, 2);
  expect_both(OpId::addcmul, {1, 5, 3}, -6.5, {-0.5, 0});
}

TEST_P(ElementwiseSemantics, RoundingGoesToEvenAndKeepsSigns) {
  expect_both(OpId::round, {0.5}, 0.0);
  expect_both(OpId::round, {-0.5}, -0.0);
  expect_both(OpId::round, {1.5}, 2);
  expect_both(OpId::round, {2.5}, 2);
  expect_both(OpId::round, {-2.5}, -2);
  expect_float<float>(OpId::round, {0.49999997f}, 0.0);
  expect_float<double>(OpId::round, {0.49999999999999994}, 0.0);
  expect_both(OpId::floor, {-0.0}, -0.0);
  expect_both(OpId::floor, {-1.25}, -2);
  expect_both(OpId::ceil, {0.0}, 0.0);
  expect_both(OpId::ceil, {-0.75}, -0.0);
  expect_both(OpId::trunc, {-1.75}, -1);
  expect_both(OpId::trunc, {0x1p100}, 0x1p100);
  EXPECT_EQ(apply<std::int32_t>(OpId::floor, {-7}), -7);
  EXPECT_EQ(apply<std::uint8_t>(OpId::round, {255}), 255);
}

// Python's divmod for the same pairs.
TEST_P(ElementwiseSemantics, FloatDivisionIsPythons) {
  struct Case {
    double a, b, quotient, rest;
  };
  for (const Case& c :
       std::vector<Case>{{7, 2, 3, 1},           {-7, 2, -4, 1},         {7, -2, -4, -1},
                         {-7, -2, 3, -1},        {6, 2, 3, 0.0},         {-6, 2, -3, 0.0},
                         {6, -2, -3, -0.0},      {0.0, 3, 0.0, 0.0},     {-0.0, 3, -0.0, 0.0},
                         {0.0, -3, -0.0, -0.0},  {1, kInf, 0.0, 1},      {-1, kInf, -1, kInf},
                         {1, -kInf, -1, -kInf},  {-1, -kInf, 0.0, -1},   {kInf, 2, kNan, kNan},
                         {-kInf, 2, kNan, kNan}, {1, 0.0, kInf, kNan},   {-1, 0.0, -kInf, kNan},
                         {1, -0.0, -kInf, kNan}, {0.0, 0.0, kNan, kNan}, {0.75, 0.25, 3, 0.0},
                         {-0.75, 0.5, -2, 0.25}}) {
    SCOPED_TRACE(testing::PrintToString(c.a) + " by " + testing::PrintToString(c.b));
    expect_both(OpId::floor_divide, {c.a, c.b}, c.quotient);
    expect_both(OpId::remainder, {c.a, c.b}, c.rest);
  }
  // 1.0 // 0.1: the quotient rounds to 10, but 0.1 as a double fits 9 times.
  expect_float<double>(OpId::floor_divide, {1.0, 0.1}, 9);
  expect_float<double>(OpId::remainder, {1.0, 0.1}, 0.09999999999999995);
  expect_float<double>(OpId::remainder, {-1e-300, 1e300}, 1e300);
}

TEST_P(ElementwiseSemantics, IntegersWrapAndNeverTrap) {
  constexpr auto kMin8 = std::numeric_limits<std::int8_t>::min();
  constexpr auto kMin32 = std::numeric_limits<std::int32_t>::min();
  constexpr auto kMin64 = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(apply<std::int8_t>(OpId::abs, {kMin8}), kMin8);
  EXPECT_EQ(apply<std::int64_t>(OpId::abs, {kMin64}), kMin64);
  EXPECT_EQ(apply<std::int32_t>(OpId::negative, {kMin32}), kMin32);
  EXPECT_EQ(apply<std::uint8_t>(OpId::negative, {1}), 255);
  EXPECT_EQ(apply<std::int8_t>(OpId::add, {127, 1}), -128);
  EXPECT_EQ(apply<std::uint64_t>(OpId::subtract, {0, 1}), ~0ULL);
  EXPECT_EQ(apply<std::uint16_t>(OpId::multiply, {65535, 65535}), 1);
  EXPECT_EQ(apply<std::int64_t>(OpId::multiply, {kMin64, -1}), kMin64);
  EXPECT_EQ(apply<std::int32_t>(OpId::square, {65536}), 0);
  EXPECT_EQ(apply<std::int16_t>(OpId::sign, {-300}), -1);
  EXPECT_EQ(apply<std::uint32_t>(OpId::sign, {7}), 1u);
  EXPECT_EQ(apply<std::int64_t>(OpId::relu, {-5}), 0);

  EXPECT_EQ(apply<std::int32_t>(OpId::floor_divide, {-7, 2}), -4);
  EXPECT_EQ(apply<std::int32_t>(OpId::floor_divide, {7, -2}), -4);
  EXPECT_EQ(apply<std::int32_t>(OpId::floor_divide, {-8, 2}), -4);
  EXPECT_EQ(apply<std::int32_t>(OpId::floor_divide, {kMin32, -1}), kMin32);
  EXPECT_EQ(apply<std::int64_t>(OpId::floor_divide, {kMin64, -1}), kMin64);
  EXPECT_EQ(apply<std::int8_t>(OpId::floor_divide, {kMin8, -1}), kMin8);
  EXPECT_EQ(apply<std::int32_t>(OpId::floor_divide, {5, 0}), 0);
  EXPECT_EQ(apply<std::uint64_t>(OpId::floor_divide, {~0ULL, 2}), ~0ULL >> 1);
  EXPECT_EQ(apply<std::int32_t>(OpId::remainder, {-7, 2}), 1);
  EXPECT_EQ(apply<std::int32_t>(OpId::remainder, {7, -2}), -1);
  EXPECT_EQ(apply<std::int32_t>(OpId::remainder, {kMin32, -1}), 0);
  EXPECT_EQ(apply<std::int64_t>(OpId::remainder, {kMin64, -1}), 0);
  EXPECT_EQ(apply<std::uint8_t>(OpId::remainder, {5, 0}), 0);

  EXPECT_EQ(apply<std::int32_t>(OpId::pow, {-3, 3}), -27);
  EXPECT_EQ(apply<std::int32_t>(OpId::pow, {0, 0}), 1);
  EXPECT_EQ(apply<std::uint8_t>(OpId::pow, {3, 6}), 217);
  EXPECT_EQ(apply<std::int64_t>(OpId::pow, {2, 64}), 0);
  EXPECT_EQ(apply<std::int64_t>(OpId::pow, {2, -1}), 0);

  EXPECT_EQ(apply<std::int32_t>(OpId::bitwise_left_shift, {1, 31}), kMin32);
  EXPECT_EQ(apply<std::int32_t>(OpId::bitwise_left_shift, {1, 32}), 0);
  EXPECT_EQ(apply<std::int32_t>(OpId::bitwise_left_shift, {1, -1}), 0);
  EXPECT_EQ(apply<std::uint8_t>(OpId::bitwise_left_shift, {255, 4}), 240);
  EXPECT_EQ(apply<std::uint8_t>(OpId::bitwise_left_shift, {255, 8}), 0);
  EXPECT_EQ(apply<std::int8_t>(OpId::bitwise_right_shift, {-5, 1}), -3);
  EXPECT_EQ(apply<std::int8_t>(OpId::bitwise_right_shift, {-5, 8}), -1);
  EXPECT_EQ(apply<std::int64_t>(OpId::bitwise_right_shift, {-5, -1}), -1);
  EXPECT_EQ(apply<std::int64_t>(OpId::bitwise_right_shift, {5, 200}), 0);
  EXPECT_EQ(apply<std::uint64_t>(OpId::bitwise_right_shift, {~0ULL, 64}), 0u);
  EXPECT_EQ(apply<std::int16_t>(OpId::bitwise_invert, {5}), -6);

  EXPECT_EQ(apply<std::int32_t>(OpId::clip, {7, 0, 5}), 5);
  EXPECT_EQ(apply<std::int32_t>(OpId::addcmul, {1, 5, 3}, {-2}), -29);
  EXPECT_EQ(apply<std::uint8_t>(OpId::addcmul, {1, 5, 3}, {-1}), 242);
  EXPECT_EQ(apply<std::uint8_t>(OpId::maximum, {200, 100}), 200);
  EXPECT_EQ(apply<std::int8_t>(OpId::maximum, {-56, 100}), 100);
}

TEST_P(ElementwiseSemantics, BoolsAreLogical) {
  for (const int a : {0, 1}) {
    for (const int b : {0, 1}) {
      const std::vector<std::uint8_t> pair = {static_cast<std::uint8_t>(a),
                                              static_cast<std::uint8_t>(b)};
      EXPECT_EQ(bools(OpId::add, pair), a | b);
      EXPECT_EQ(bools(OpId::multiply, pair), a & b);
      EXPECT_EQ(bools(OpId::maximum, pair), a | b);
      EXPECT_EQ(bools(OpId::minimum, pair), a & b);
      EXPECT_EQ(bools(OpId::bitwise_and, pair), a & b);
      EXPECT_EQ(bools(OpId::bitwise_or, pair), a | b);
      EXPECT_EQ(bools(OpId::bitwise_xor, pair), a ^ b);
      EXPECT_EQ(bools(OpId::less, pair), a < b);
      EXPECT_EQ(bools(OpId::logical_xor, pair), a != b);
    }
    const auto one = static_cast<std::uint8_t>(a);
    EXPECT_EQ(bools(OpId::bitwise_invert, {one}), 1 - a);
    EXPECT_EQ(bools(OpId::logical_not, {one}), 1 - a);
    EXPECT_EQ(bools(OpId::isnan, {one}), 0);
    EXPECT_EQ(bools(OpId::isfinite, {one}), 1);
    EXPECT_EQ(bools(OpId::where, {one, 1, 0}), a);
  }
}

TEST_P(ElementwiseSemantics, PredicatesAndComparisons) {
  EXPECT_EQ(test<float>(OpId::isnan, {static_cast<float>(kNan)}), 1);
  EXPECT_EQ(test<double>(OpId::isinf, {-kInf}), 1);
  EXPECT_EQ(test<double>(OpId::isinf, {kNan}), 0);
  EXPECT_EQ(test<double>(OpId::isfinite, {kNan}), 0);
  EXPECT_EQ(test<double>(OpId::isfinite, {-1e308}), 1);
  EXPECT_EQ(test<float>(OpId::signbit, {-0.0f}), 1);
  EXPECT_EQ(test<double>(OpId::signbit, {-kNan}), 1);
  EXPECT_EQ(test<std::int8_t>(OpId::signbit, {-1}), 1);
  EXPECT_EQ(test<std::uint8_t>(OpId::signbit, {255}), 0);
  EXPECT_EQ(test<std::int64_t>(OpId::isfinite, {-1}), 1);
  EXPECT_EQ(test<std::int64_t>(OpId::isinf, {-1}), 0);
  EXPECT_EQ(test<float>(OpId::logical_not, {-0.0f}), 1);
  EXPECT_EQ(test<float>(OpId::logical_not, {static_cast<float>(kNan)}), 0);
  EXPECT_EQ(test<double>(OpId::logical_and, {kNan, 1}), 1);
  EXPECT_EQ(test<double>(OpId::logical_or, {0.0, -0.0}), 0);
  EXPECT_EQ(test<double>(OpId::logical_xor, {kNan, 1}), 0);
  EXPECT_EQ(test<double>(OpId::equal, {0.0, -0.0}), 1);
  for (const OpId op :
       {OpId::equal, OpId::less, OpId::less_equal, OpId::greater, OpId::greater_equal}) {
    EXPECT_EQ(test<double>(op, {kNan, kNan}), 0);
  }
  EXPECT_EQ(test<double>(OpId::not_equal, {kNan, kNan}), 1);
  EXPECT_EQ(test<std::uint8_t>(OpId::less, {100, 200}), 1);
  EXPECT_EQ(test<std::int8_t>(OpId::less, {100, -56}), 0);
  EXPECT_EQ(test<std::uint64_t>(OpId::greater, {1ULL << 63, 1}), 1);
  EXPECT_EQ(test<std::int64_t>(OpId::greater_equal, {std::numeric_limits<std::int64_t>::min(), 1}),
            0);
}

TEST_P(ElementwiseSemantics, StepsAndSignsByBits) {
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  expect_float<double>(OpId::nextafter, {0.0, 1}, kLeast);
  expect_float<double>(OpId::nextafter, {0.0, -1}, -kLeast);
  expect_float<double>(OpId::nextafter, {kLeast, 0}, 0.0);
  expect_float<double>(OpId::nextafter, {-kLeast, 1}, -0.0);
  expect_float<double>(OpId::nextafter, {1, 2}, 1.0000000000000002);
  expect_float<double>(OpId::nextafter, {-1, 0}, -0.9999999999999999);
  expect_float<double>(OpId::nextafter, {1.7976931348623157e308, kInf}, kInf);
  expect_float<float>(OpId::nextafter, {1, 2}, 0x1.000002p0);
  expect_both(OpId::nextafter, {0.0, -0.0}, -0.0);
  expect_both(OpId::nextafter, {3, 3}, 3);
  expect_both(OpId::copysign, {3, -0.0}, -3);
  expect_both(OpId::copysign, {-kInf, 1}, kInf);
}

/// Distance in units of the last place of `expected`.
template <class T>
double ulps(T got, long double expected) {
  if (std::isnan(got) || std::isnan(expected))
    return std::isnan(got) == std::isnan(expected) ? 0 : kInf;
  if (got == static_cast<T>(expected)) return 0;
  const T magnitude = std::fabs(static_cast<T>(expected));
  const long double unit =
      static_cast<long double>(std::nextafter(magnitude, std::numeric_limits<T>::infinity())) -
      magnitude;
  return static_cast<double>(std::fabs(static_cast<long double>(got) - expected) / unit);
}

// Every approximated op against its formula in long double, which has 11 bits more than double.
TEST_P(ElementwiseSemantics, NO_TSAN_FormulasHold) {
  using L = long double;
  const L root2 = std::sqrt(L(2));
  const std::vector<std::pair<OpId, std::function<L(L)>>> unary = {
      {OpId::rsqrt, [](L x) { return 1 / std::sqrt(x); }},
      {OpId::exp, [](L x) { return std::exp(x); }},
      {OpId::exp2, [](L x) { return std::exp2(x); }},
      {OpId::expm1, [](L x) { return std::expm1(x); }},
      {OpId::log, [](L x) { return std::log(x); }},
      {OpId::log2, [](L x) { return std::log2(x); }},
      {OpId::log10, [](L x) { return std::log10(x); }},
      {OpId::log1p, [](L x) { return std::log1p(x); }},
      {OpId::sin, [](L x) { return std::sin(x); }},
      {OpId::cos, [](L x) { return std::cos(x); }},
      {OpId::tan, [](L x) { return std::tan(x); }},
      {OpId::asin, [](L x) { return std::asin(x); }},
      {OpId::acos, [](L x) { return std::acos(x); }},
      {OpId::atan, [](L x) { return std::atan(x); }},
      {OpId::sinh, [](L x) { return std::sinh(x); }},
      {OpId::cosh, [](L x) { return std::cosh(x); }},
      {OpId::tanh, [](L x) { return std::tanh(x); }},
      {OpId::asinh, [](L x) { return std::asinh(x); }},
      {OpId::acosh, [](L x) { return std::acosh(x); }},
      {OpId::atanh, [](L x) { return std::atanh(x); }},
      {OpId::erf, [](L x) { return std::erf(x); }},
      {OpId::sigmoid, [](L x) { return 1 / (1 + std::exp(-x)); }},
      {OpId::elu, [](L x) { return x > 0 ? x : L(1.5) * std::expm1(x); }},
      {OpId::gelu, [&](L x) { return x * std::erfc(-x / root2) / 2; }},
      {OpId::gelu_tanh,
       [](L x) {
         const L u = std::sqrt(2 / std::acos(L(-1))) * (x + L(0.044715) * x * x * x);
         return x / (1 + std::exp(-2 * u));
       }},
      {OpId::silu, [](L x) { return x / (1 + std::exp(-x)); }},
      {OpId::mish, [](L x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {OpId::softplus,
       [](L x) { return L(1.5) * x > 20 ? x : std::log1p(std::exp(L(1.5) * x)) / L(1.5); }}};
  for (const auto& [op, formula] : unary) {
    for (double x = -30; x <= 30; x += 0.0625 + 1.0 / 1024) {
      SCOPED_TRACE("op " + std::to_string(static_cast<int>(op)) + " of " + std::to_string(x));
      // These round their argument and its scale. The tails multiply both errors by the condition
      // number x f'(x) / f(x). Float results are computed in a wider type, or corrected.
      const bool scaled = op == OpId::gelu || op == OpId::gelu_tanh || op == OpId::softplus;
      const L step = std::ldexp(L(1), -40);
      const L condition = (formula(x * (1 + step)) / formula(x) - 1) / step;
      const double bound = 4 + (scaled ? 2 * static_cast<double>(std::fabs(condition)) : 0.0);
      ASSERT_LE(ulps(apply<double>(op, {x}, {1.5, 20}), formula(x)), bound);
      const auto single = static_cast<float>(x);
      ASSERT_LE(ulps(apply<float>(op, {single}, {1.5, 20}), formula(single)), 4);
    }
  }
  const std::vector<std::pair<OpId, std::function<L(L, L)>>> binary = {
      {OpId::pow, [](L x, L y) { return std::pow(x, y); }},
      {OpId::atan2, [](L y, L x) { return std::atan2(y, x); }},
      {OpId::hypot, [](L x, L y) { return std::hypot(x, y); }},
      {OpId::logaddexp,
       [](L x, L y) { return std::max(x, y) + std::log1p(std::exp(-std::fabs(x - y))); }}};
  for (const auto& [op, formula] : binary) {
    for (double x = -7; x <= 7; x += 0.34375) {
      for (double y = -7; y <= 7; y += 0.46875) {
        // logaddexp cancels where its result is near 0: there the bound is absolute.
        if (op == OpId::logaddexp && std::fabs(formula(x, y)) < 0.25) continue;
        SCOPED_TRACE("op " + std::to_string(static_cast<int>(op)) + " of " + std::to_string(x) +
                     ", " + std::to_string(y));
        ASSERT_LE(ulps(apply<double>(op, {x, y}), formula(x, y)), 4);
        ASSERT_LE(
            ulps(apply<float>(op, {static_cast<float>(x), static_cast<float>(y)}), formula(x, y)),
            4);
      }
    }
  }
}

TEST_P(ElementwiseSemantics, ExtremesOfActivations) {
  expect_both(OpId::sigmoid, {-kInf}, 0.0);
  expect_both(OpId::sigmoid, {kInf}, 1);
  EXPECT_GT(apply<double>(OpId::sigmoid, {-740.0}), 0.0);
  expect_both(OpId::silu, {kInf}, kInf);
  expect_both(OpId::gelu, {kInf}, kInf);
  expect_both(OpId::gelu_tanh, {kInf}, kInf);
  expect_both(OpId::mish, {kInf}, kInf);
  expect_both(OpId::gelu, {-1e20}, -0.0);
  expect_both(OpId::gelu_tanh, {-1e20}, -0.0);
  expect_both(OpId::silu, {-1e20}, -0.0);
  expect_both(OpId::mish, {-1e20}, -0.0);
  // x times a factor of 0, as in the formula.
  for (const OpId op : {OpId::silu, OpId::gelu, OpId::gelu_tanh, OpId::mish, OpId::hardswish}) {
    expect_both(op, {-kInf}, kNan);
  }
  expect_both(OpId::softplus, {-kInf}, 0.0, {1, 20});
  expect_both(OpId::softplus, {kInf}, kInf, {1, 20});
  expect_both(OpId::elu, {-kInf}, -1.5, {1.5});
  expect_both(OpId::logaddexp, {-kInf, -kInf}, -kInf);
  expect_both(OpId::logaddexp, {kInf, kInf}, kInf);
  expect_both(OpId::logaddexp, {-kInf, 2}, 2);
  expect_both(OpId::hypot, {kInf, kNan}, kInf);
  expect_both(OpId::pow, {0.0, 0.0}, 1);
  expect_both(OpId::pow, {-8, 1.0 / 3}, kNan);
  expect_both(OpId::atan2, {0.0, -0.0}, 3.14159265358979323846);
}

INSTANTIATE_TEST_SUITE_P(Isas, ElementwiseSemantics, testing::ValuesIn(test::all_isas()),
                         [](const auto& tested) { return std::string(isa_name(tested.param)); });

}  // namespace
}  // namespace baregrad::kernels

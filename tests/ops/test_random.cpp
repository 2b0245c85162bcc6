// Random ops: exact values from Philox, the same at any thread count; ranges, moments, errors.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "baregrad/parallel.h"
#include "core/philox.h"
#include "core/visit.h"
#include "tests/ops/support.h"

namespace baregrad {
namespace {

constexpr std::uint64_t kSeed = 0x5eed5eed12345678ULL;

/// Word w of the sequence that starts at `position`, straight from the definition.
std::uint32_t word(std::uint64_t position, std::int64_t w) {
  const std::uint64_t counter = position + static_cast<std::uint64_t>(w / 4);
  const PhiloxCounter block =
      philox({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0},
             {static_cast<std::uint32_t>(kSeed), static_cast<std::uint32_t>(kSeed >> 32)});
  return block[static_cast<std::size_t>(w % 4)];
}
std::uint64_t word64(std::uint64_t position, std::int64_t i) {
  return word(position, 2 * i) | std::uint64_t{word(position, 2 * i + 1)} << 32;
}

std::vector<double> any_doubles(const Tensor& t) {
  return visit_dtype(t.dtype(), [&]<class T>(TypeTag<T>) { return doubles<T>(t); });
}

struct Moments {
  double mean;
  double variance;
};
Moments moments(const std::vector<double>& v) {
  double mean = 0;
  for (const double x : v) mean += x;
  mean /= static_cast<double>(v.size());
  double variance = 0;
  for (const double x : v) variance += (x - mean) * (x - mean);
  return {mean, variance / static_cast<double>(v.size())};
}

// ---- The same values everywhere

/// One call of every random op, for a given generator.
std::vector<std::function<Tensor(Generator*)>> all_ops(const Dims& shape) {
  std::vector<std::function<Tensor(Generator*)>> ops;
  for (const DType d : kFloats) {
    ops.emplace_back([=](Generator* g) { return rand(shape, d, g); });
    ops.emplace_back([=](Generator* g) { return uniform(shape, -3, 0.7, d, g); });
    ops.emplace_back([=](Generator* g) { return randn(shape, d, g); });
    ops.emplace_back([=](Generator* g) { return normal(shape, 2, 3, d, g); });
    ops.emplace_back([=](Generator* g) { return bernoulli(full(shape, 0.3, d), g); });
    ops.emplace_back([=](Generator* g) { return bernoulli(shape, 0.3, d, g); });
  }
  for (const DType d : {bool_, int8, uint8, int32, int64, float16, float32}) {
    ops.emplace_back([=](Generator* g) { return randint(0, 2, shape, d, g); });
  }
  ops.emplace_back([=](Generator* g) { return randint(kMin64, kMax64, shape, int64, g); });
  ops.emplace_back([=](Generator* g) { return bernoulli(shape, 0.3, bool_, g); });
  std::int64_t n = 1;
  for (const std::int64_t s : shape) n *= s;
  ops.emplace_back([=](Generator* g) { return randperm(n, int64, g); });
  return ops;
}

std::vector<char> bytes_of(const Tensor& t) {
  std::vector<char> bytes(t.nbytes());
  t.copy_to(bytes.data());
  return bytes;
}

TEST(Random, NO_ASAN_SameBitsAtAnyThreadCount) {
  const int before = get_num_threads();
  int k = 0;
  for (const auto& op : all_ops({3, 33331})) {
    std::vector<char> first;
    for (const int threads : {1, 2, 3, 4, 8}) {
      set_num_threads(threads);
      Generator g(kSeed);
      const std::vector<char> bytes = bytes_of(op(&g));
      if (threads == 1) first = bytes;
      ASSERT_EQ(bytes, first) << "op " << k << " with " << threads << " threads";
    }
    ++k;
  }
  set_num_threads(before);
}

TEST(Random, ALongerCallBeginsWithTheShorterOne) {
  const auto longer = all_ops({40000});
  for (const std::int64_t n : {1, 2, 3, 4, 5, 127, 128, 129, 256, 257, 16384, 16387}) {
    const auto shorter = all_ops({n});
    for (std::size_t k = 0; k + 1 < shorter.size(); ++k) {  // all but randperm
      Generator g1(kSeed);
      Generator g2(kSeed);
      const std::vector<char> few = bytes_of(shorter[k](&g1));
      const std::vector<char> many = bytes_of(longer[k](&g2));
      ASSERT_TRUE(std::equal(few.begin(), few.end(), many.begin())) << "op " << k << " size " << n;
    }
  }
}

TEST(Random, ConsecutiveCallsNeverShareABlock) {
  // Two consecutive calls give the values of one call for both, in whole blocks.
  const auto both = all_ops({64});
  const auto half = all_ops({32});
  for (std::size_t k = 0; k + 1 < both.size(); ++k) {
    Generator g1(kSeed);
    Generator g2(kSeed);
    const std::vector<char> want = bytes_of(both[k](&g1));
    std::vector<char> got = bytes_of(half[k](&g2));
    const std::vector<char> rest = bytes_of(half[k](&g2));
    got.insert(got.end(), rest.begin(), rest.end());
    ASSERT_EQ(got, want) << "op " << k;
    ASSERT_EQ(g1.state(), g2.state()) << "op " << k;
  }
  // A partly used block counts as used.
  Generator g(kSeed);
  rand({1}, float32, &g);
  EXPECT_EQ(g.state().position, 1U);
  rand({5}, float32, &g);
  EXPECT_EQ(g.state().position, 3U);
  rand({5}, float64, &g);
  EXPECT_EQ(g.state().position, 6U);
  rand({0, 3}, float32, &g);
  EXPECT_EQ(g.state().position, 6U);
}

TEST(Random, DefaultGeneratorIsUsedAndSeeded) {
  const Generator::State before = default_generator().state();
  manual_seed(kSeed);
  const std::vector<float> a = randn({10}).to_vector<float>();
  const std::vector<float> b = randn({10}).to_vector<float>();
  EXPECT_NE(a, b);
  manual_seed(kSeed);
  EXPECT_EQ(randn({10}).to_vector<float>(), a);
  Generator g(kSeed);
  EXPECT_EQ(randn({10}, float32, &g).to_vector<float>(), a);
  default_generator().set_state(before);
}

TEST(Random, WhatIsRefusedMovesNothing) {
  Generator g(kSeed);
  EXPECT_THROW(rand({-1}, float32, &g), ValueError);
  EXPECT_THROW(rand({4}, int32, &g), DTypeError);
  EXPECT_THROW(uniform({4}, 2, 1, float32, &g), ValueError);
  EXPECT_THROW(normal({4}, 0, -1, float32, &g), ValueError);
  EXPECT_THROW(randint(3, 3, {4}, int64, &g), ValueError);
  EXPECT_THROW(randperm(-1, int64, &g), ValueError);
  EXPECT_THROW(bernoulli({4}, 1.5, float32, &g), ValueError);
  EXPECT_THROW(bernoulli(full({4}, kNan), &g), ValueError);
  EXPECT_EQ(g.state(), (Generator::State{kSeed, 0}));
}

// ---- Uniform

TEST(Uniform, ExactValues) {
  const std::uint64_t position = 1234567;
  Generator g;
  constexpr std::int64_t kCount = 1003;
  g.set_state({kSeed, position});
  const std::vector<float> f = rand({kCount}, float32, &g).to_vector<float>();
  g.set_state({kSeed, position});
  const std::vector<double> d = rand({kCount}, float64, &g).to_vector<double>();
  g.set_state({kSeed, position});
  const std::vector<double> h = doubles<Float16>(rand({kCount}, float16, &g));
  g.set_state({kSeed, position});
  const std::vector<double> b = doubles<BFloat16>(rand({kCount}, bfloat16, &g));
  for (std::int64_t i = 0; i < kCount; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const double u24 = static_cast<double>(word(position, i) >> 8) * std::ldexp(1.0, -24);
    ASSERT_EQ(f[k], u24);
    ASSERT_EQ(d[k], static_cast<double>(word64(position, i) >> 11) * std::ldexp(1.0, -53));
    // Rounded down: the greatest value of the dtype that is not greater.
    ASSERT_LE(h[k], u24);
    ASSERT_LE(b[k], u24);
    if (u24 > 0) {
      int e = 0;
      std::frexp(u24, &e);  // u24 in [2^(e-1), 2^e): neighbours are 2^(e-11) and 2^(e-8) apart
      ASSERT_EQ(h[k], std::floor(std::ldexp(u24, 11 - std::max(e, -13))) *
                          std::ldexp(1.0, std::max(e, -13) - 11));
      ASSERT_EQ(b[k], std::floor(std::ldexp(u24, 8 - e)) * std::ldexp(1.0, e - 8));
    }
  }
}

TEST(Uniform, NO_TSAN_MomentsAndBuckets) {
  for (const DType dtype : kFloats) {
    SCOPED_TRACE(name(dtype));
    Generator g(kSeed);
    const std::vector<double> v = any_doubles(rand({1 << 18}, dtype, &g));
    const auto n = static_cast<double>(v.size());
    const Moments m = moments(v);
    // bfloat16 keeps 8 bits and is rounded down: it may be too low by up to half a step of 2^-8.
    const double slack = dtype == bfloat16 ? 2e-3 : dtype == float16 ? 3e-4 : 0;
    EXPECT_NEAR(m.mean, 0.5, 5 * std::sqrt(1 / 12.0 / n) + slack);
    EXPECT_NEAR(m.variance, 1 / 12.0, 1e-3 + slack);
    std::vector<double> counts(64);
    for (const double x : v) {
      ASSERT_GE(x, 0.0);
      ASSERT_LT(x, 1.0);
      ++counts[static_cast<std::size_t>(x * 64)];
    }
    double chi2 = 0;
    for (const double c : counts) chi2 += (c - n / 64) * (c - n / 64) / (n / 64);
    EXPECT_LT(chi2, 63 + 6 * std::sqrt(2 * 63.0));
    EXPECT_GT(chi2, 63 - 5 * std::sqrt(2 * 63.0));
  }
}

TEST(Uniform, StaysInsideEvenAfterRounding) {
  const struct {
    double low, high;
  } ranges[] = {{0, 1},        {1, 1.01},
                {-1, 0},       {0.1, 0.2},
                {0.7, 0.7001}, {-5, -4.9},
                {100, 101},    {1000, 1001},
                {-1e-3, 1e-3}, {-65504, 65504},
                {0, 1e-7},     {-0.0, 0.3},
                {3, 3.002},    {1, std::nextafter(1, 2)}};
  for (const DType dtype : kFloats) {
    visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
      if constexpr (!std::is_integral_v<T>) {
        for (const auto& r : ranges) {
          Generator g(kSeed);
          const std::vector<double> v = doubles<T>(uniform({20000}, r.low, r.high, dtype, &g));
          // The value of T nearest to low, if none lies inside.
          const double alone = static_cast<double>(T(r.low));
          bool some_inside = false;
          for (const double x : v) some_inside |= x >= r.low && x < r.high;
          for (const double x : v) {
            if (some_inside) {
              ASSERT_GE(x, r.low) << name(dtype) << " " << r.low << " " << r.high;
              ASSERT_LT(x, r.high) << name(dtype) << " " << r.low << " " << r.high;
            } else {
              ASSERT_EQ(x, alone) << name(dtype) << " " << r.low << " " << r.high;
            }
          }
        }
      }
    });
  }
}

TEST(Uniform, NoneInsideOnlyWhereThereIsNone) {
  // [1, 1.01) contains 1.0 in every float dtype; [1.001, 1.002) contains no bfloat16.
  for (const double x : any_doubles(uniform({100}, 1, 1.01, bfloat16))) {
    EXPECT_GE(x, 1);
    EXPECT_LT(x, 1.01);
  }
  for (const double x : any_doubles(uniform({100}, 1.001, 1.002, bfloat16))) EXPECT_EQ(x, 1.0);
}

TEST(Uniform, EqualBoundsAndGreatestSpan) {
  for (const DType dtype : kFloats) {
    for (const double x : any_doubles(uniform({1000}, 2.5, 2.5, dtype))) ASSERT_EQ(x, 2.5);
  }
  Generator g(kSeed);
  const double most = std::numeric_limits<double>::max();
  const std::vector<double> v = uniform({4000}, -most, most, float64, &g).to_vector<double>();
  int negative = 0;
  for (const double x : v) {
    ASSERT_TRUE(std::isfinite(x));
    ASSERT_LT(x, most);
    negative += x < 0 ? 1 : 0;
  }
  EXPECT_NEAR(negative, 2000, 200);
}

TEST(Uniform, Refusals) {
  expect_error<ValueError>([] { uniform({2}, 1, 0); }, "uniform: low 1 is greater than high 0");
  expect_error<ValueError>([] { uniform({2}, 0, kInf); },
                           "uniform: the bounds 0 and inf are not finite float32 numbers");
  expect_error<ValueError>([] { uniform({2}, kNan, 1); },
                           "uniform: the bounds nan and 1 are not finite float32 numbers");
  expect_error<ValueError>([] { uniform({2}, 0, 65536, float16); },
                           "uniform: the bounds 0 and 65536 are not finite float16 numbers");
  expect_error<ValueError>([] { uniform({2}, -1e300, 0, float32); },
                           "uniform: the bounds -1e+300 and 0 are not finite float32 numbers");
  expect_error<DTypeError>([] { uniform({2}, 0, 1, int64); },
                           "uniform: draws floats, not int64; randint draws integers");
  expect_error<DTypeError>([] { rand({2}, bool_); },
                           "rand: draws floats, not bool; randint draws integers");
  expect_error<ValueError>([] { rand({2, -5}); }, "rand: negative size -5 in shape [2,-5]");
  EXPECT_THROW(rand({kMax64}), ShapeError);
  EXPECT_THROW(rand({std::int64_t{1} << 55}), OutOfMemory);
}

// ---- Normal

TEST(Normal, BoxMullerOfTheSequence) {
  constexpr std::int64_t kCount = 4001;
  const std::uint64_t position = 99;
  Generator g;
  g.set_state({kSeed, position});
  const std::vector<float> f = normal({kCount}, 0, 1, float32, &g).to_vector<float>();
  g.set_state({kSeed, position});
  const std::vector<double> d = normal({kCount}, 0, 1, float64, &g).to_vector<double>();
  const double turn = 2 * std::acos(-1.0);
  for (std::int64_t i = 0; i < kCount; ++i) {
    const std::int64_t pair = i / 2;
    const double u32 = (word(position, 2 * pair) + 1.0) * std::ldexp(1.0, -32);
    const double t32 = word(position, 2 * pair + 1) * std::ldexp(1.0, -32);
    const double u64 =
        static_cast<double>((word64(position, 2 * pair) >> 11) + 1) * std::ldexp(1.0, -53);
    const double t64 =
        static_cast<double>(word64(position, 2 * pair + 1) >> 11) * std::ldexp(1.0, -53);
    const auto wave = [&](double t) {
      return i % 2 == 0 ? std::cos(turn * t) : std::sin(turn * t);
    };
    const double want32 = std::sqrt(-2 * std::log(u32)) * wave(t32);
    const double want64 = std::sqrt(-2 * std::log(u64)) * wave(t64);
    ASSERT_NEAR(f[static_cast<std::size_t>(i)], want32, 1e-6 * (1 + std::fabs(want32))) << i;
    ASSERT_NEAR(d[static_cast<std::size_t>(i)], want64, 5e-15 * (1 + std::fabs(want64))) << i;
  }
}

TEST(Normal, NO_TSAN_MomentsTailsAndIndependence) {
  for (const DType dtype : kFloats) {
    SCOPED_TRACE(name(dtype));
    Generator g(kSeed);
    const std::vector<double> z = any_doubles(randn({1 << 20}, dtype, &g));
    const auto n = static_cast<double>(z.size());
    const Moments m = moments(z);
    EXPECT_NEAR(m.mean, 0, 5 / std::sqrt(n));
    EXPECT_NEAR(m.variance, 1, 5 * std::sqrt(2 / n) + (dtype == bfloat16 ? 1e-4 : 0));
    double skew = 0;
    double fourth = 0;
    double neighbours = 0;
    for (std::size_t i = 0; i < z.size(); ++i) {
      skew += z[i] * z[i] * z[i] / n;
      fourth += z[i] * z[i] * z[i] * z[i] / n;
      if (i > 0) neighbours += z[i] * z[i - 1] / n;
    }
    EXPECT_NEAR(skew, 0, 0.02);
    EXPECT_NEAR(fourth, 3, 0.06);
    EXPECT_NEAR(neighbours, 0, 5 / std::sqrt(n));
    const struct {
      double beyond, share;
    } tails[] = {{0.5, 0.617075}, {1, 0.317311}, {2, 0.0455003}, {3, 0.0026998}, {4, 6.334e-5}};
    for (const auto& t : tails) {
      if (dtype == bfloat16 && t.beyond > 2) continue;  // steps of 2^-6 there move the border
      const auto count = static_cast<double>(
          std::count_if(z.begin(), z.end(), [&](double x) { return std::fabs(x) > t.beyond; }));
      EXPECT_NEAR(count, t.share * n,
                  6 * std::sqrt(t.share * n) +
                      2e-3 * t.share * n * (dtype == float32 || dtype == float64 ? 0 : 10))
          << t.beyond;
    }
    const double most = *std::max_element(z.begin(), z.end());
    EXPECT_GT(most, 4.3);
    EXPECT_LT(most, 6.7);
  }
}

TEST(Normal, MeanAndDeviationAndAlwaysFinite) {
  Generator g(kSeed);
  const Moments m = moments(any_doubles(normal({200000}, -7, 0.5, float32, &g)));
  EXPECT_NEAR(m.mean, -7, 0.01);
  EXPECT_NEAR(m.variance, 0.25, 0.01);
  for (const double x : any_doubles(normal({100}, 3, 0))) EXPECT_EQ(x, 3);
  for (const DType dtype : kFloats) {
    for (const double x : any_doubles(normal({5000}, 0, 1e308, dtype))) {
      ASSERT_TRUE(std::isfinite(x)) << name(dtype);
    }
    for (const double x : any_doubles(normal({5000}, 1e308, 1e308, dtype))) {
      ASSERT_TRUE(std::isfinite(x)) << name(dtype);
    }
  }
}

TEST(Normal, Refusals) {
  const char* const text =
      "normal: mean 0 and deviation -1 must be finite, the deviation not negative";
  expect_error<ValueError>([] { normal({2}, 0, -1); }, text);
  EXPECT_THROW(normal({2}, kNan, 1), ValueError);
  EXPECT_THROW(normal({2}, 0, kInf), ValueError);
  EXPECT_THROW(normal({2}, 0, kNan), ValueError);
  expect_error<DTypeError>([] { randn({2}, int8); },
                           "randn: draws floats, not int8; randint draws integers");
  expect_error<DTypeError>([] { normal({2}, 0, 1, bool_); },
                           "normal: draws floats, not bool; randint draws integers");
}

// ---- Integers

TEST(Randint, NO_TSAN_ExactValuesInEveryDType) {
  for (int d = 0; d < kNumDTypes; ++d) {
    const auto dtype = static_cast<DType>(d);
    SCOPED_TRACE(name(dtype));
    const std::int64_t low = is_bool(dtype) || is_unsigned_int(dtype) ? 0 : -100;
    const std::int64_t high = is_bool(dtype) ? 2 : 101;
    const auto range = static_cast<std::uint64_t>(high - low);
    Generator g(kSeed);
    const std::vector<double> v = any_doubles(randint(low, high, {777}, dtype, &g));
    for (std::size_t i = 0; i < v.size(); ++i) {
      const long double share = static_cast<long double>(word64(0, static_cast<std::int64_t>(i)));
      const auto want = static_cast<double>(
          low + static_cast<std::int64_t>(std::floor(share * range / 18446744073709551616.0L)));
      ASSERT_EQ(v[i], want) << i;
    }
  }
}

TEST(Randint, WholeRangeAndSingleValue) {
  Generator g(kSeed);
  const std::vector<std::int64_t> v =
      randint(kMin64, kMax64, {10000}, int64, &g).to_vector<std::int64_t>();
  const auto negative = std::count_if(v.begin(), v.end(), [](std::int64_t x) { return x < 0; });
  EXPECT_NEAR(static_cast<double>(negative), 5000, 300);
  EXPECT_LT(*std::min_element(v.begin(), v.end()), kMin64 / 1000 * 999);
  EXPECT_GT(*std::max_element(v.begin(), v.end()), kMax64 / 1000 * 999);
  for (const std::int64_t x : randint(kMin64, kMin64 + 1, {9}).to_vector<std::int64_t>()) {
    EXPECT_EQ(x, kMin64);
  }
  for (const std::uint8_t x : randint(255, 256, {9}, uint8).to_vector<std::uint8_t>())
    EXPECT_EQ(x, 255);
  EXPECT_EQ(randint(0, kMax64, {5}, uint64).dtype(), uint64);
  EXPECT_EQ(randint(0, 5, {0}).numel(), 0);
  EXPECT_EQ(randint(0, 5, {}).ndim(), 0);
}

TEST(Randint, EveryValueEquallyOften) {
  Generator g(kSeed);
  const std::vector<std::int32_t> v = randint(-3, 7, {100000}, int32, &g).to_vector<std::int32_t>();
  std::vector<double> counts(10);
  for (const std::int32_t x : v) ++counts.at(static_cast<std::size_t>(x + 3));
  double chi2 = 0;
  for (const double c : counts) chi2 += (c - 10000) * (c - 10000) / 10000;
  EXPECT_LT(chi2, 9 + 6 * std::sqrt(18.0));
}

TEST(Randint, Refusals) {
  expect_error<ValueError>([] { randint(5, 5, {2}); }, "randint: no integer lies in [5, 5)");
  expect_error<ValueError>([] { randint(5, kMin64, {2}); },
                           "randint: no integer lies in [5, -9223372036854775808)");
  expect_error<ValueError>([] { randint(0, 257, {2}, uint8); },
                           "randint: [0, 257) does not fit uint8, which holds 0 to 255");
  EXPECT_NO_THROW(randint(0, 256, {2}, uint8));
  expect_error<ValueError>(
      [] { randint(-1, 2, {2}, uint64); },
      "randint: [-1, 2) does not fit uint64, which holds 0 to 9223372036854775807");
  expect_error<ValueError>([] { randint(-129, 2, {2}, int8); },
                           "randint: [-129, 2) does not fit int8, which holds -128 to 127");
  expect_error<ValueError>([] { randint(0, 3, {2}, bool_); },
                           "randint: [0, 3) does not fit bool, which holds 0 to 1");
  expect_error<ValueError>([] { randint(0, 2050, {2}, float16); },
                           "randint: [0, 2050) does not fit float16, which holds -2048 to 2048");
  expect_error<ValueError>([] { randint(0, 2, {-2}); }, "randint: negative size -2 in shape [-2]");
}

TEST(Randperm, IsAPermutationInEveryIntegerDType) {
  for (int d = 0; d < kNumDTypes; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (!is_integer(dtype)) continue;
    SCOPED_TRACE(name(dtype));
    for (const std::int64_t n : {0, 1, 2, 3, 64, 127, 128}) {
      const Tensor p = randperm(n, dtype);
      ASSERT_EQ(p.dtype(), dtype);
      std::vector<double> v = any_doubles(p);
      std::sort(v.begin(), v.end());
      ASSERT_EQ(v.size(), static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < v.size(); ++i) ASSERT_EQ(v[i], static_cast<double>(i));
    }
  }
  std::vector<std::int64_t> v = randperm(100001).to_vector<std::int64_t>();
  std::sort(v.begin(), v.end());
  for (std::size_t i = 0; i < v.size(); ++i) ASSERT_EQ(v[i], static_cast<std::int64_t>(i));
}

TEST(Randperm, EveryOrderEquallyOften) {
  Generator g(kSeed);
  std::vector<double> counts(64);
  constexpr int kDraws = 24000;
  for (int i = 0; i < kDraws; ++i) {
    const std::vector<std::int64_t> p = randperm(4, int64, &g).to_vector<std::int64_t>();
    ++counts[static_cast<std::size_t>(p[0] * 16 + p[1] * 4 + p[2])];
  }
  double chi2 = 0;
  int orders = 0;
  for (const double c : counts) {
    if (c == 0) continue;
    ++orders;
    chi2 += (c - 1000) * (c - 1000) / 1000;
  }
  EXPECT_EQ(orders, 24);
  EXPECT_LT(chi2, 23 + 6 * std::sqrt(46.0));
}

TEST(Randperm, Refusals) {
  expect_error<ValueError>([] { randperm(-1); }, "randperm: the count is negative: -1");
  expect_error<ValueError>([] { randperm(129, int8); }, "randperm: 129 positions do not fit int8");
  EXPECT_EQ(randperm(256, uint8).numel(), 256);
  expect_error<ValueError>([] { randperm(257, uint8); },
                           "randperm: 257 positions do not fit uint8");
  expect_error<DTypeError>([] { randperm(3, float32); },
                           "randperm: positions are integers, not float32");
  EXPECT_THROW(randperm(3, bool_), DTypeError);
  EXPECT_THROW(randperm(kMax64), ShapeError);
}

// ---- Bernoulli

TEST(Bernoulli, SharesAndCertainties) {
  for (int d = 0; d < kNumDTypes; ++d) {
    const auto dtype = static_cast<DType>(d);
    SCOPED_TRACE(name(dtype));
    for (const double p : {0.0, 0.01, 0.3, 0.5, 0.99, 1.0}) {
      Generator g(kSeed);
      const Tensor t = bernoulli({40000}, p, dtype, &g);
      ASSERT_EQ(t.dtype(), dtype);
      double ones = 0;
      for (const double x : any_doubles(t)) {
        ASSERT_TRUE(x == 0 || x == 1);
        ones += x;
      }
      EXPECT_NEAR(ones, 40000 * p, 5 * std::sqrt(40000 * p * (1 - p)));
    }
  }
}

TEST(Bernoulli, OneExactlyWhereTheNumberLiesBelow) {
  for (std::uint64_t position = 0; position < 50; ++position) {
    const double w32 = word(position, 0);
    const auto w52 = static_cast<double>(word64(position, 0) >> 12);
    const auto once = [&](double p, DType dtype) {
      Generator g;
      g.set_state({kSeed, position});
      return bernoulli({}, p, dtype, &g).item<int>();
    };
    EXPECT_EQ(once(std::ldexp(w32 + 0.25, -32), float32), 0);
    EXPECT_EQ(once(std::ldexp(w32 + 0.75, -32), float32), 1);
    EXPECT_EQ(once(std::ldexp(w52, -52), float64), 0);
    EXPECT_EQ(once(std::ldexp(w52 + 1, -52), float64), 1);
  }
}

TEST(Bernoulli, FollowsItsTensor) {
  for (const DType dtype : kFloats) {
    Generator g(kSeed);
    const Tensor p = astype(reshape(linspace(0, 1, 5, float64), {5, 1}), dtype);
    const Tensor t = bernoulli(expand(p, {5, 20000}), &g);  // strides of 0: any layout is fine
    ASSERT_EQ(t.dtype(), dtype);
    ASSERT_EQ(t.shape(), (Dims{5, 20000}));
    const std::vector<double> v = any_doubles(t);
    for (std::size_t r = 0; r < 5; ++r) {
      double ones = 0;
      for (std::size_t c = 0; c < 20000; ++c) ones += v[r * 20000 + c];
      const double share = static_cast<double>(r) / 4;
      EXPECT_NEAR(ones, 20000 * share, 5 * std::sqrt(20000 * share * (1 - share))) << name(dtype);
    }
  }
  EXPECT_EQ(bernoulli(zeros({0})).numel(), 0);
  EXPECT_EQ(bernoulli(ones({})).item<float>(), 1);
}

TEST(Bernoulli, Refusals) {
  expect_error<ValueError>([] { bernoulli({2}, 1.5); },
                           "bernoulli: 1.5 is no probability: it must lie in [0, 1]");
  EXPECT_THROW(bernoulli({2}, -1e-9), ValueError);
  EXPECT_THROW(bernoulli({2}, kNan), ValueError);
  expect_error<ValueError>(
      [] {
        bernoulli(Tensor::of<float>({0.5F, -0.25F}));
      },
      "bernoulli: -0.25 in float32[2] is no probability: it must lie in [0, 1]");
  expect_error<ValueError>(
      [] {
        bernoulli(Tensor::of<float>({0.5F, 2.0F}));
      },
      "bernoulli: 2 in float32[2] is no probability: it must lie in [0, 1]");
  expect_error<ValueError>(
      [] {
        bernoulli(Tensor::of<double>({0.5, kNan, 0.1}));
      },
      "bernoulli: nan in float64[3] is no probability: it must lie in [0, 1]");
  expect_error<DTypeError>([] { bernoulli(ones({2}, int32)); },
                           "bernoulli: probabilities are floats, not int32[2]");
  expect_error<ValueError>([] { bernoulli(Tensor()); },
                           "bernoulli: the tensor of probabilities is undefined");
  EXPECT_THROW(bernoulli({-2}, 0.5), ValueError);
}

}  // namespace
}  // namespace baregrad

// Float16 and BFloat16: every bit pattern to float, every rounding case from float.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "baregrad/half.h"

namespace baregrad {
namespace {

/// The value of a bit pattern, from the definition of the format.
double value_of(std::uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int sign = bits >> 15;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double v = 0;
  if (exponent == (1 << exponent_bits) - 1) {
    v = mantissa == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    v = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  } else {
    v = std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  }
  return sign != 0 ? -v : v;
}

template <class H>
void check_all_patterns(int exponent_bits, int mantissa_bits) {
  for (int i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const H h = H::from_bits(bits);
    const double want = value_of(bits, exponent_bits, mantissa_bits);
    const double got = static_cast<double>(static_cast<float>(h));
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << i;
      ASSERT_TRUE(std::isnan(static_cast<float>(H(got)))) << i;
    } else {
      ASSERT_EQ(got, want) << i;
      ASSERT_EQ(std::signbit(got), std::signbit(want)) << i;
      ASSERT_EQ(H(want).bits, bits) << i;
    }
  }
}

/// Between any two neighbours: just below, at and just above the midpoint.
template <class H>
void check_rounding(std::uint16_t inf) {
  for (std::uint16_t bits = 0; bits + 1 < inf; ++bits) {
    const double low = static_cast<float>(H::from_bits(bits));
    const double high = static_cast<float>(H::from_bits(static_cast<std::uint16_t>(bits + 1)));
    const double middle = (low + high) / 2;
    const std::uint16_t even = (bits & 1) == 0 ? bits : static_cast<std::uint16_t>(bits + 1);
    ASSERT_EQ(H(middle).bits, even) << bits;
    ASSERT_EQ(H(std::nextafter(middle, 0.0)).bits, bits) << bits;
    ASSERT_EQ(H(std::nextafter(middle, INFINITY)).bits, bits + 1) << bits;
    ASSERT_EQ(H(-middle).bits, even | 0x8000) << bits;
  }
  // Infinity begins halfway between the greatest finite value and its would-be successor.
  const double greatest = static_cast<float>(H::from_bits(static_cast<std::uint16_t>(inf - 1)));
  const double before = static_cast<float>(H::from_bits(static_cast<std::uint16_t>(inf - 2)));
  const double limit = greatest + (greatest - before) / 2;
  EXPECT_EQ(H(limit).bits, inf);
  EXPECT_EQ(H(std::nextafter(limit, 0.0)).bits, inf - 1);
  EXPECT_EQ(H(std::numeric_limits<double>::max()).bits, inf);
  EXPECT_EQ(H(std::numeric_limits<double>::denorm_min()).bits, 0);
  EXPECT_EQ(H(-std::numeric_limits<double>::denorm_min()).bits, 0x8000);
}

TEST(Half, Float16MeansWhatIeeeSays) { check_all_patterns<Float16>(5, 10); }
TEST(Half, BFloat16MeansWhatIeeeSays) { check_all_patterns<BFloat16>(8, 7); }
TEST(Half, Float16RoundsToNearestEven) { check_rounding<Float16>(0x7c00); }
TEST(Half, BFloat16RoundsToNearestEven) { check_rounding<BFloat16>(0x7f80); }

}  // namespace
}  // namespace baregrad

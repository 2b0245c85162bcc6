// Scalar: weak dtypes, range checks, storing and loading.
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "baregrad/scalar.h"

namespace baregrad {
namespace {

TEST(Scalar, TakesTheTensorsDTypeWhenTheKindFits) {
  EXPECT_EQ(weak_dtype(3, int8), int8);
  EXPECT_EQ(weak_dtype(3, float16), float16);
  EXPECT_EQ(weak_dtype(2.5, bfloat16), bfloat16);
  EXPECT_EQ(weak_dtype(true, int8), int8);
  EXPECT_EQ(weak_dtype(2.5, int64), float32);
  EXPECT_EQ(weak_dtype(2.5, bool_), float32);
  EXPECT_EQ(weak_dtype(3, bool_), int64);
  EXPECT_EQ(weak_dtype(true, bool_), bool_);
}

TEST(Scalar, AloneItHasADefault) {
  EXPECT_EQ(default_dtype(true), bool_);
  EXPECT_EQ(default_dtype(1), int64);
  EXPECT_EQ(default_dtype(1U), int64);
  EXPECT_EQ(default_dtype(std::numeric_limits<std::uint64_t>::max()), uint64);
  EXPECT_EQ(default_dtype(1.0F), float32);
}

template <class T>
T stored(const Scalar& s) {
  T out{};
  store_scalar(s, dtype_of<T>, &out, "test");
  return out;
}

TEST(Scalar, IntegersThatDoNotFitAreRefused) {
  EXPECT_EQ(stored<std::int8_t>(-128), -128);
  EXPECT_EQ(stored<std::uint8_t>(255), 255);
  EXPECT_THROW(stored<std::int8_t>(128), ValueError);
  EXPECT_THROW(stored<std::int8_t>(-129), ValueError);
  EXPECT_THROW(stored<std::uint8_t>(-1), ValueError);
  EXPECT_THROW(stored<std::uint64_t>(-1), ValueError);
  EXPECT_THROW(stored<std::int64_t>(std::numeric_limits<std::uint64_t>::max()), ValueError);
  EXPECT_EQ(stored<std::uint64_t>(std::numeric_limits<std::uint64_t>::max()),
            std::numeric_limits<std::uint64_t>::max());
  try {
    stored<std::uint8_t>(300);
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_STREQ(e.what(), "test: 300 does not fit uint8");
  }
}

TEST(Scalar, FloatsSaturateInIntegers) {
  EXPECT_EQ(stored<std::int8_t>(1e9), 127);
  EXPECT_EQ(stored<std::int8_t>(-1e9), -128);
  EXPECT_EQ(stored<std::uint8_t>(-3.5), 0);
  EXPECT_EQ(stored<std::int64_t>(9.3e18), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(stored<std::uint64_t>(1e30), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(stored<std::int32_t>(-2.9), -2);
  EXPECT_EQ(stored<std::int32_t>(NAN), 0);
}

TEST(Scalar, LoadsWhatWasStored) {
  const double values[] = {0.0, 1.0, 5.0, 100.0};
  for (int d = 0; d < kNumDTypes; ++d) {
    for (const double v : values) {
      char element[8];
      store_scalar(v, static_cast<DType>(d), element, "test");
      const double want = d == 0 ? static_cast<double>(v != 0) : v;
      EXPECT_EQ(load_scalar(element, static_cast<DType>(d)).to_double(), want) << d;
    }
  }
}

TEST(Scalar, AnyNonZeroByteIsTrue) {
  const unsigned char byte = 7;
  EXPECT_EQ(load_scalar(&byte, bool_).to_int64(), 1);
}

}  // namespace
}  // namespace baregrad

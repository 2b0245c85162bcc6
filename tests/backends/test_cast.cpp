// Casts of every pair of dtypes on every instruction set: against the reference, and the reference
// against values computed by hand.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/table.h"
#include "core/visit.h"
#include "tests/backends/fenced_buffer.h"
#include "tests/backends/kernel_values.h"

namespace baregrad::kernels {
namespace {

using test::FencedBuffer;
using test::kIsHalf;
using test::Stored;

CastFn cast_of(Isa isa, DType from, DType to) {
  return table(isa).cast[static_cast<int>(from)][static_cast<int>(to)];
}

/// Floats whose lowest bits decide the rounding to 16 bits: ties, and one bit to either side.
std::vector<float> floats_about_ties() {
  std::vector<float> values;
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    for (const std::uint32_t low : {0x0u, 0x1u, 0xfffu, 0x1000u, 0x1001u, 0x1fffu, 0x3000u, 0x5000u,
                                    0x7fffu, 0x8000u, 0x8001u, 0xf000u, 0xffffu}) {
      values.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  return values;
}

/// Doubles next to the ties of both 16-bit formats, closer to them than a float can express.
std::vector<double> doubles_about_ties() {
  std::vector<double> values;
  const auto about = [&](double a, double b) {
    const double middle = (a + b) / 2;
    if (!std::isfinite(middle)) return;
    for (const double x : {middle, std::nextafter(middle, a), std::nextafter(middle, b)}) {
      values.push_back(x);
      values.push_back(-x);
    }
  };
  for (std::uint16_t bits = 0; bits < 0x7f80; ++bits) {
    const auto next = static_cast<std::uint16_t>(bits + 1);
    if (bits < 0x7c00) {
      about(static_cast<double>(Float16::from_bits(bits)),
            static_cast<double>(Float16::from_bits(next)));
    }
    about(static_cast<double>(BFloat16::from_bits(bits)),
          static_cast<double>(BFloat16::from_bits(next)));
  }
  return values;
}

/// 64-bit integers next to the ties of bfloat16, float32 and float64.
template <class T>
std::vector<T> integers_about_ties(std::mt19937_64& rng) {
  std::vector<T> values;
  for (const int digits : {8, 24, 53}) {
    for (int shift = 1; shift + digits < 64; ++shift) {
      for (int i = 0; i < 8; ++i) {
        const std::uint64_t kept = (rng() >> (64 - digits)) | 1ULL << (digits - 1);
        const std::uint64_t tie = (2 * kept + 1) << (shift - 1);
        for (const std::uint64_t x : {tie - 1, tie, tie + 1}) {
          values.push_back(static_cast<T>(x));
          values.push_back(static_cast<T>(0 - x));
        }
      }
    }
  }
  return values;
}

template <class T>
std::vector<Stored<T>> sources() {
  std::mt19937_64 rng(7);
  std::vector<Stored<T>> values;
  if constexpr (kIsHalf<T>) {
    for (int bits = 0; bits < 0x10000; ++bits) {
      values.push_back(T::from_bits(static_cast<std::uint16_t>(bits)));
    }
    return values;
  } else {
    values = test::edge_values<T>();
    if constexpr (std::is_same_v<T, bool>) values = {0, 1, 2, 128, 255};
    for (int i = 0; i < 3000; ++i) values.push_back(test::random_value<T>(rng));
    const auto append = [&](const auto& more) {
      values.insert(values.end(), more.begin(), more.end());
    };
    if constexpr (std::is_floating_point_v<T>) {
      // Values next to the ends of every integer range.
      for (const int digits : {7, 8, 15, 16, 31, 32, 63, 64}) {
        const T end = std::ldexp(T(1), digits);
        for (const T x :
             {end, std::nextafter(end, T(0)), end - 1, end + 1, end + T(0.5), end * 2}) {
          append(std::vector<T>{x, -x});
        }
      }
    }
    if constexpr (std::is_same_v<T, float>) append(floats_about_ties());
    if constexpr (std::is_same_v<T, double>) append(doubles_about_ties());
    if constexpr (std::is_integral_v<T> && sizeof(T) == 8) append(integers_about_ties<T>(rng));
    return values;
  }
}

template <class T>
bool is_nan(T x) {
  if constexpr (kIsHalf<T>)
    return std::isnan(static_cast<float>(x));
  else
    return x != x;
}

/// The same bits, or both NaN of the same sign: the payload may differ, since F16C makes NaNs
/// quiet.
template <class T>
bool same_but_for_payload(T a, T b) {
  if (std::memcmp(&a, &b, sizeof(T)) == 0) return true;
  if (!is_nan(a) || !is_nan(b)) return false;
  if constexpr (kIsHalf<T>)
    return a.bits >> 15 == b.bits >> 15;
  else
    return std::signbit(static_cast<double>(a)) == std::signbit(static_cast<double>(b));
}

/// The elements of one dtype as bytes: casts are compared pair by pair without a function for each.
struct Elements {
  DType dtype = DType::Bool;
  std::vector<std::byte> bytes;

  static Elements empty(DType dtype, std::size_t n) {
    return {dtype, std::vector<std::byte>(n * itemsize(dtype))};
  }
  static const Elements& sources(DType dtype) {
    static std::vector<Elements> made(kNumDTypes);
    Elements& out = made[static_cast<std::size_t>(dtype)];
    if (!out.bytes.empty()) return out;
    out.dtype = dtype;
    visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
      const auto values = kernels::sources<T>();
      out.bytes.resize(values.size() * sizeof(values[0]));
      std::memcpy(out.bytes.data(), values.data(), out.bytes.size());
    });
    return out;
  }
  std::size_t size() const { return bytes.size() / itemsize(dtype); }
  const std::byte* at(std::size_t i) const { return bytes.data() + i * itemsize(dtype); }

  template <class T>
  Stored<T> get(std::size_t i) const {
    Stored<T> value;
    std::memcpy(&value, at(i), sizeof value);
    return value;
  }
  double shown(std::size_t i) const {
    double value = 0;
    visit_dtype(dtype, [&]<class T>(TypeTag<T>) { value = static_cast<double>(get<T>(i)); });
    return value;
  }
  /// The first element that differs, or the size.
  std::size_t mismatch(const Elements& other) const {
    std::size_t i = 0;
    visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
      while (i < size() && same_but_for_payload(get<T>(i), other.get<T>(i))) ++i;
    });
    return i;
  }
};

/// Calls test(from, to) for all pairs.
template <class Test>
void for_each_pair(Test test) {
  for (int from = 0; from < kNumDTypes; ++from) {
    for (int to = 0; to < kNumDTypes; ++to) {
      SCOPED_TRACE("from " + std::to_string(from) + " to " + std::to_string(to));
      test(static_cast<DType>(from), static_cast<DType>(to));
    }
  }
}

class CastKernels : public testing::TestWithParam<Isa> {};

TEST_P(CastKernels, AgreeWithTheReference) {
  for_each_pair([](DType from, DType to) {
    const Elements& x = Elements::sources(from);
    const CastFn fn = cast_of(GetParam(), from, to);
    const CastFn plain = cast_of(Isa::Reference, from, to);
    ASSERT_NE(fn, nullptr);
    ASSERT_NE(fn, plain);
    Elements got = Elements::empty(to, x.size());
    Elements expected = Elements::empty(to, x.size());
    fn(x.bytes.data(), got.bytes.data(), static_cast<std::int64_t>(x.size()));
    plain(x.bytes.data(), expected.bytes.data(), static_cast<std::int64_t>(x.size()));
    // A cast from bool to bool keeps the byte.
    if (is_bool(from) && is_bool(to)) return;
    const std::size_t i = got.mismatch(expected);
    ASSERT_EQ(i, got.size()) << x.shown(i) << " gives " << got.shown(i) << ", not "
                             << expected.shown(i);
  });
}

TEST_P(CastKernels, NO_TSAN_TouchTheirElementsAloneAtEveryLength) {
  for_each_pair([](DType from, DType to) {
    const Elements& x = Elements::sources(from);
    const std::size_t in_width = itemsize(from);
    const std::size_t out_width = itemsize(to);
    const CastFn fn = cast_of(GetParam(), from, to);
    Elements whole = Elements::empty(to, x.size());
    fn(x.bytes.data(), whole.bytes.data(), static_cast<std::int64_t>(x.size()));
    FencedBuffer in(130 * 8), out(130 * 8);
    for (std::size_t n = 0; n <= 130; ++n) {
      const std::size_t start = (n * 37) % (x.size() - 130);
      in.resize(n * in_width);
      out.resize(n * out_width);
      if (n != 0) std::memcpy(in.data(), x.at(start), n * in_width);
      const auto check = [&](FencedBuffer& result) {
        // Bits, including NaN's: the tail of a run is converted like its body.
        ASSERT_EQ(std::memcmp(result.data(), whole.at(start), n * out_width), 0) << n;
        ASSERT_TRUE(result.intact_before()) << n;
      };
      fn(in.data(), out.data(), static_cast<std::int64_t>(n));
      check(out);
      ASSERT_EQ(std::memcmp(in.data(), x.at(start), n * in_width), 0) << n;
      if (in_width == out_width) {
        fn(in.data(), in.data(), static_cast<std::int64_t>(n));
        check(in);
      }
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

/// The reference must return these too.
class CastValues : public testing::TestWithParam<Isa> {};

/// One value through the kernel of the instruction set.
template <class To, class From>
Stored<To> cast_one(Stored<From> value) {
  Stored<To> result;
  cast_of(CastValues::GetParam(), dtype_of<From>, dtype_of<To>)(&value, &result, 1);
  return result;
}

TEST_P(CastValues, AreTheDocumentedOnes) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  // Floats into integers: truncated, held to the range, NaN to 0.
  EXPECT_EQ((cast_one<std::int32_t, float>(-2.9f)), -2);
  EXPECT_EQ((cast_one<std::int8_t, float>(300.0f)), 127);
  EXPECT_EQ((cast_one<std::int8_t, float>(-300.0f)), -128);
  EXPECT_EQ((cast_one<std::uint8_t, float>(-0.5f)), 0);
  EXPECT_EQ((cast_one<std::uint8_t, float>(-1.0f)), 0);
  EXPECT_EQ((cast_one<std::uint16_t, float>(65535.9f)), 65535);
  EXPECT_EQ((cast_one<std::int32_t, float>(kInf)), 2147483647);
  EXPECT_EQ((cast_one<std::int32_t, float>(2147483648.0f)), 2147483647);
  EXPECT_EQ((cast_one<std::int32_t, float>(2147483520.0f)), 2147483520);
  EXPECT_EQ((cast_one<std::int64_t, double>(-1e300)), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ((cast_one<std::uint64_t, double>(18446744073709549568.0)), 18446744073709549568u);
  EXPECT_EQ((cast_one<std::uint64_t, double>(18446744073709551616.0)), ~0ULL);
  EXPECT_EQ((cast_one<std::int64_t, float>(kNan)), 0);
  // Integers into integers wrap.
  EXPECT_EQ((cast_one<std::int8_t, std::int32_t>(300)), 44);
  EXPECT_EQ((cast_one<std::uint64_t, std::int8_t>(-1)), ~0ULL);
  EXPECT_EQ((cast_one<std::int64_t, std::uint32_t>(0xffffffffu)), 4294967295);
  // Everything but zero is true.
  EXPECT_EQ((cast_one<bool, float>(kNan)), 1);
  EXPECT_EQ((cast_one<bool, float>(-0.0f)), 0);
  EXPECT_EQ((cast_one<bool, double>(1e-320)), 1);
  EXPECT_EQ((cast_one<bool, Float16>(Float16::from_bits(0x8000))), 0);
  EXPECT_EQ((cast_one<bool, std::int64_t>(1LL << 40)), 1);
  EXPECT_EQ((cast_one<float, bool>(2)), 1.0f);
  EXPECT_EQ((cast_one<std::int64_t, bool>(255)), 1);
  // float16: ties to even, overflow to infinity from 65520 on, subnormals.
  EXPECT_EQ((cast_one<Float16, float>(65519.99f).bits), 0x7bff);
  EXPECT_EQ((cast_one<Float16, float>(65520.0f).bits), 0x7c00);
  EXPECT_EQ((cast_one<Float16, float>(2049.0f).bits), 0x6800);
  EXPECT_EQ((cast_one<Float16, float>(2051.0f).bits), 0x6802);
  EXPECT_EQ((cast_one<Float16, float>(0x1p-25f).bits), 0x0000);
  EXPECT_EQ((cast_one<Float16, float>(0x1.000002p-25f).bits), 0x0001);
  EXPECT_EQ((cast_one<Float16, float>(-0x1.8p-24f).bits), 0x8002);
  EXPECT_EQ((cast_one<Float16, std::int32_t>(70000).bits), 0x7c00);
  EXPECT_EQ((cast_one<float, Float16>(Float16::from_bits(0x0001))), 0x1p-24f);
  EXPECT_EQ((cast_one<float, Float16>(Float16::from_bits(0xfbff))), -65504.0f);
  // Rounded once: through float32 each of these would become a tie, and round down to even.
  EXPECT_EQ((cast_one<Float16, double>(2049.0000000001).bits), 0x6801);
  EXPECT_EQ((cast_one<BFloat16, double>(1.00390625000001).bits), 0x3f81);
  EXPECT_EQ((cast_one<BFloat16, std::int32_t>((257 << 20) + 1).bits), 0x4d81);
  EXPECT_EQ((cast_one<BFloat16, std::int64_t>((257LL << 50) + 1).bits), 0x5c81);
  EXPECT_EQ((cast_one<BFloat16, std::uint64_t>((257ULL << 55) + 1).bits), 0x5f01);
  EXPECT_EQ((cast_one<float, std::int64_t>((0x1000001LL << 36) + 1)), 0x1.000002p60f);
  EXPECT_EQ((cast_one<float, std::int64_t>(-(0x1000001LL << 36) - 1)), -0x1.000002p60f);
  // bfloat16: ties to even, carry into infinity, NaN stays NaN.
  EXPECT_EQ((cast_one<BFloat16, float>(std::bit_cast<float>(0x3f808000u)).bits), 0x3f80);
  EXPECT_EQ((cast_one<BFloat16, float>(std::bit_cast<float>(0x3f818000u)).bits), 0x3f82);
  EXPECT_EQ((cast_one<BFloat16, float>(std::numeric_limits<float>::max()).bits), 0x7f80);
  EXPECT_TRUE(is_nan(cast_one<BFloat16, float>(std::bit_cast<float>(0x7f800001u))));
  EXPECT_TRUE(is_nan(cast_one<Float16, float>(std::bit_cast<float>(0xff800001u))));
}

// Without tables or libm: halves decoded from their bit fields.
TEST_P(CastValues, OfAllHalvesAreExact) {
  for (int i = 0; i < 0x10000; ++i) {
    const auto half = Float16::from_bits(static_cast<std::uint16_t>(i));
    const float got = cast_one<float, Float16>(half);
    const int exponent = (i >> 10) & 31;
    const int mantissa = i & 1023;
    ASSERT_EQ(std::signbit(got), i >= 0x8000) << i;
    if (exponent == 31) {
      ASSERT_TRUE(mantissa == 0 ? std::isinf(got) : std::isnan(got)) << i;
    } else {
      const double magnitude =
          exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
      ASSERT_EQ(std::fabs(got), magnitude) << i;
      ASSERT_EQ((cast_one<Float16, float>(got).bits), i);
      ASSERT_EQ((cast_one<Float16, double>(got).bits), i);
    }
    const auto bfloat = BFloat16::from_bits(static_cast<std::uint16_t>(i));
    const float wide = cast_one<float, BFloat16>(bfloat);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(wide), static_cast<std::uint32_t>(i) << 16);
    if (!std::isnan(wide)) {
      ASSERT_EQ((cast_one<BFloat16, float>(wide).bits), i);
    }
  }
}

std::string name_of(const testing::TestParamInfo<Isa>& tested) {
  return std::string(isa_name(tested.param));
}
INSTANTIATE_TEST_SUITE_P(Isas, CastKernels, testing::ValuesIn(available_isas()), name_of);
INSTANTIATE_TEST_SUITE_P(Isas, CastValues, testing::ValuesIn(available_isas()), name_of);
INSTANTIATE_TEST_SUITE_P(Reference, CastValues, testing::Values(Isa::Reference), name_of);

}  // namespace
}  // namespace baregrad::kernels

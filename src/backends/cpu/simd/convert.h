// One element from one dtype to another, without branches, so that loops over it vectorise.
//
// Every result is rounded once, to nearest-even. Where a conversion needs an intermediate format,
// it rounds to odd there (an inexact value gets an odd last bit), which the final rounding cannot
// mistake for a tie.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include <hwy/highway.h>

#include "baregrad/half.h"
#include "ops/scalar_math.h"

namespace baregrad::kernels::HWY_NAMESPACE {

/// How an element lies in memory.
template <class T>
struct StoredAs {
  using type = T;
};
template <>
struct StoredAs<bool> {
  using type = std::uint8_t;
};
template <>
struct StoredAs<Float16> {
  using type = std::uint16_t;
};
template <>
struct StoredAs<BFloat16> {
  using type = std::uint16_t;
};
template <class T>
using Stored = typename StoredAs<T>::type;

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

BG_INLINE float float_from_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t rest = half & 0x7fffu;
  const std::uint32_t normal = (rest << 13) + (112u << 23);
  // An infinity or a NaN needs the same exponent correction again; a NaN is made quiet, as F16C
  // does.
  const std::uint32_t nan = rest > 0x7c00u ? 0x400000u : 0u;
  const std::uint32_t special = (normal + (112u << 23)) | nan;
  const auto subnormal =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<int>(rest)) * 0x1p-24f);
  const std::uint32_t finite = rest < 0x400u ? subnormal : normal;
  return std::bit_cast<float>(sign | (rest < 0x7c00u ? finite : special));
}

BG_INLINE std::uint16_t half_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t rest = bits & 0x7fffffffu;
  // Rounding up may carry into the exponent, and from the greatest half to infinity: both are
  // right.
  const std::uint32_t normal = (rest - (112u << 23) + 0xfffu + ((rest >> 13) & 1u)) >> 13;
  // The sum's unit in the last place is the least subnormal half.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) + 0.5f) - 0x3f000000u;
  const std::uint32_t finite = rest < 0x38800000u ? subnormal : normal;
  const std::uint32_t nan = 0x7e00u | ((rest >> 13) & 0x3ffu);
  const std::uint32_t special = rest > 0x7f800000u ? nan : 0x7c00u;
  return static_cast<std::uint16_t>(sign | (rest < 0x47800000u ? finite : special));
}

BG_INLINE float float_from_bfloat(std::uint16_t bfloat) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bfloat) << 16);
}

BG_INLINE std::uint16_t bfloat_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t nan = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>(value == value ? rounded : nan);
}

/// Rounded to odd.
BG_INLINE float odd_float_from(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  const std::uint32_t away = __builtin_fabs(back) > __builtin_fabs(value) ? 1u : 0u;
  const std::uint32_t inexact = back != value ? 1u : 0u;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(nearest) - away) | inexact);
}

/// Correctly rounded, in operations that every instruction set has for vectors: the two halves
/// become mantissas of doubles, of which only the last sum rounds.
template <class Int>
BG_INLINE double double_from_int64(Int value) {
  const auto bits = static_cast<std::uint64_t>(value);
  constexpr std::uint64_t kFlip = std::is_signed_v<Int> ? 0x80000000u : 0u;
  constexpr double kBias = 0x1p84 + 0x1p52 + (std::is_signed_v<Int> ? 0x1p63 : 0.0);
  const auto low = std::bit_cast<double>((bits & 0xffffffffu) | 0x4330000000000000u);
  const auto high = std::bit_cast<double>((bits >> 32) ^ (0x4530000000000000u | kFlip));
  return (high - kBias) + low;
}

/// Exact up to 2^53, rounded to odd above.
template <class Int>
BG_INLINE double odd_double_from(Int value) {
  const auto bits = static_cast<std::uint64_t>(value);
  constexpr int kBound = std::is_signed_v<Int> ? 54 : 53;
  const std::uint64_t shifted = bits + (std::is_signed_v<Int> ? 1ULL << 53 : 0);
  const std::uint64_t low = bits & 0xfffu;
  const std::uint64_t odd = (bits ^ low) | (low != 0 ? 0x800u : 0u);
  return double_from_int64(static_cast<Int>(shifted >> kBound == 0 ? bits : odd));
}

/// A float that narrows to 16 bits as `value` itself would.
template <class From>
BG_INLINE float odd_float(From value) {
  if constexpr (std::is_same_v<From, float> || sizeof(From) <= 2)
    return static_cast<float>(value);
  else if constexpr (std::is_integral_v<From> && sizeof(From) == 8)
    return odd_float_from(odd_double_from(value));
  else
    return odd_float_from(static_cast<double>(value));
}

template <class From, class To>
BG_INLINE Stored<To> convert(Stored<From> x) {
  if constexpr (std::is_same_v<From, To>) {
    return x;
  } else if constexpr (std::is_same_v<To, bool>) {
    if constexpr (kIsHalf<From>)
      return (x & 0x7fffu) != 0;
    else
      return x != 0;
  } else if constexpr (std::is_same_v<From, bool>) {
    return convert<std::int8_t, To>(x != 0);
  } else if constexpr (std::is_same_v<From, Float16>) {
    return convert<float, To>(float_from_half(x));
  } else if constexpr (std::is_same_v<From, BFloat16>) {
    return convert<float, To>(float_from_bfloat(x));
  } else if constexpr (std::is_same_v<To, Float16>) {
    return half_from_float(odd_float(x));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return bfloat_from_float(odd_float(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return saturating_trunc<To>(x);
#if HWY_TARGET != HWY_AVX3  // AVX-512 has conversions of 64-bit integers
  } else if constexpr (std::is_integral_v<From> && sizeof(From) == 8 && std::is_same_v<To, float>) {
    return static_cast<float>(odd_double_from(x));
  } else if constexpr (std::is_integral_v<From> && sizeof(From) == 8 &&
                       std::is_same_v<To, double>) {
    return double_from_int64(x);
#endif
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace baregrad::kernels::HWY_NAMESPACE

// Scalar<T>: one number with the interface functors.h asks of a value; the plain twin of a vector.
//
// Its arithmetic is defined for every input: integers wrap, shifts and divisions never trap.
// Everything is forced inline, because this header is read by translation units of different
// instruction sets, which must not share a compiled copy.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__CUDACC__)
#define BG_INLINE __host__ __device__ __forceinline__
#else
#define BG_INLINE inline __attribute__((always_inline))
#endif

namespace baregrad {

/// A float as an integer: truncated, held to the range of `To`, 0 for NaN.
template <class To, class From>
BG_INLINE To saturating_trunc(From x) {
  static_assert(std::is_integral_v<To> && std::is_floating_point_v<From>);
  constexpr To kMin = std::numeric_limits<To>::min();
  constexpr To kMax = std::numeric_limits<To>::max();
  // max + 1 is a power of two: exact, where max itself may not be.
  constexpr To kHalf = kMax / 2 + 1;
  constexpr From kEnd = static_cast<From>(kHalf) * 2;
  if (x >= kEnd) return kMax;
  if (x <= static_cast<From>(kMin)) return kMin;
  return x == x ? static_cast<To>(x) : To{0};
}

template <class T>
struct Scalar {
  static constexpr bool kFloating = std::is_floating_point_v<T>;
  static constexpr bool kBool = std::is_same_v<T, bool>;
  using Raw = std::conditional_t<kBool, std::uint8_t, T>;
  using Mask = bool;

  Raw raw;

  /// A value as it lies in memory; any non-zero byte is a true bool.
  static BG_INLINE Scalar load(Raw stored) {
    if constexpr (kBool) return {static_cast<Raw>(stored != 0)};
    return {stored};
  }
  static BG_INLINE Scalar constant(double value) {
    if constexpr (kBool)
      return {static_cast<Raw>(value != 0)};
    else if constexpr (kFloating)
      return {static_cast<T>(value)};
    else
      return {saturating_trunc<T>(value)};
  }
  /// The lowest bits of an integer.
  static BG_INLINE Scalar modular(std::uint64_t value) requires(!kFloating) {
    return wrap(static_cast<Wide>(value));
  }

  friend BG_INLINE Scalar operator+(Scalar a, Scalar b) {
    if constexpr (kFloating)
      return {a.raw + b.raw};
    else if constexpr (kBool)
      return {static_cast<Raw>(a.raw | b.raw)};
    else
      return wrap(wide(a) + wide(b));
  }
  friend BG_INLINE Scalar operator-(Scalar a, Scalar b) {
    if constexpr (kFloating)
      return {a.raw - b.raw};
    else
      return wrap(wide(a) - wide(b));
  }
  friend BG_INLINE Scalar operator*(Scalar a, Scalar b) {
    if constexpr (kFloating)
      return {a.raw * b.raw};
    else if constexpr (kBool)
      return {static_cast<Raw>(a.raw & b.raw)};
    else
      return wrap(wide(a) * wide(b));
  }
  friend BG_INLINE Scalar operator/(Scalar a, Scalar b) requires kFloating {
    return {a.raw / b.raw};
  }
  friend BG_INLINE Scalar operator-(Scalar a) {
    if constexpr (kFloating)
      return {-a.raw};
    else
      return wrap(~wide(a) + 1);
  }

  friend BG_INLINE Scalar operator&(Scalar a, Scalar b) {
    return {static_cast<Raw>(a.raw & b.raw)};
  }
  friend BG_INLINE Scalar operator|(Scalar a, Scalar b) {
    return {static_cast<Raw>(a.raw | b.raw)};
  }
  friend BG_INLINE Scalar operator^(Scalar a, Scalar b) {
    return {static_cast<Raw>(a.raw ^ b.raw)};
  }
  friend BG_INLINE Scalar operator~(Scalar a) {
    if constexpr (kBool)
      return {static_cast<Raw>(a.raw ^ 1)};
    else
      return {static_cast<Raw>(~a.raw)};
  }
  /// Out-of-range counts (negative ones too) shift everything out.
  friend BG_INLINE Scalar operator<<(Scalar a, Scalar count) {
    const Unsigned c = static_cast<Unsigned>(count.raw);
    return c < kBits ? wrap(wide(a) << c) : Scalar{0};
  }
  friend BG_INLINE Scalar operator>>(Scalar a, Scalar count) {
    const Unsigned c = static_cast<Unsigned>(count.raw);
    if constexpr (std::is_signed_v<T>)
      return {static_cast<T>(a.raw >> (c < kBits ? c : kBits - 1))};
    else
      return c < kBits ? Scalar{static_cast<T>(a.raw >> c)} : Scalar{0};
  }

  friend BG_INLINE bool operator==(Scalar a, Scalar b) { return a.raw == b.raw; }
  friend BG_INLINE bool operator!=(Scalar a, Scalar b) { return a.raw != b.raw; }
  friend BG_INLINE bool operator<(Scalar a, Scalar b) { return a.raw < b.raw; }
  friend BG_INLINE bool operator<=(Scalar a, Scalar b) { return a.raw <= b.raw; }
  friend BG_INLINE bool operator>(Scalar a, Scalar b) { return a.raw > b.raw; }
  friend BG_INLINE bool operator>=(Scalar a, Scalar b) { return a.raw >= b.raw; }

  static BG_INLINE Scalar select(bool mask, Scalar yes, Scalar no) {
    return {mask ? yes.raw : no.raw};
  }

  static BG_INLINE bool is_nan(Scalar x) { return x.raw != x.raw; }
  static BG_INLINE bool is_inf(Scalar x) {
    if constexpr (kFloating)
      return abs(x).raw == std::numeric_limits<T>::infinity();
    else
      return false;
  }
  static BG_INLINE bool is_finite(Scalar x) {
    if constexpr (kFloating)
      return abs(x).raw < std::numeric_limits<T>::infinity();
    else
      return true;
  }
  static BG_INLINE bool sign_bit(Scalar x) {
    if constexpr (std::is_same_v<T, float>)
      return std::bit_cast<std::int32_t>(x.raw) < 0;
    else if constexpr (kFloating)
      return std::bit_cast<std::int64_t>(x.raw) < 0;
    else if constexpr (std::is_signed_v<T>)
      return x.raw < 0;
    else
      return false;
  }

  static BG_INLINE Scalar abs(Scalar x) {
    if constexpr (std::is_same_v<T, float>)
      return {__builtin_fabsf(x.raw)};
    else if constexpr (kFloating)
      return {__builtin_fabs(x.raw)};
    else if constexpr (std::is_signed_v<T>)
      return x.raw < 0 ? -x : x;
    else
      return x;
  }

  /// floor(a / b); 0 where b is 0, wraps for the least integer by -1.
  static BG_INLINE Scalar floor_divide(Scalar a, Scalar b) requires(!kFloating) {
    if (b.raw == 0) return {0};
    if constexpr (std::is_signed_v<T>) {
      if (b.raw == -1) return -a;
      const T quotient = static_cast<T>(a.raw / b.raw);
      const bool inexact = a.raw % b.raw != 0;
      return {static_cast<T>(quotient - (inexact && (a.raw < 0) != (b.raw < 0) ? 1 : 0))};
    } else {
      return {static_cast<T>(a.raw / b.raw)};
    }
  }
  /// a - floor_divide(a, b) * b; 0 where b is 0.
  static BG_INLINE Scalar remainder(Scalar a, Scalar b) requires(!kFloating) {
    if (b.raw == 0) return {0};
    if constexpr (std::is_signed_v<T>) {
      if (b.raw == -1) return {0};
      const T rest = static_cast<T>(a.raw % b.raw);
      return {static_cast<T>(rest != 0 && (rest < 0) != (b.raw < 0) ? rest + b.raw : rest)};
    } else {
      return {static_cast<T>(a.raw % b.raw)};
    }
  }

// libm under its C names: the C++ overloads are inline functions that objects would share.
#define BG_LIBM(name, function)                \
  static BG_INLINE Scalar name(Scalar x) {     \
    if constexpr (std::is_same_v<T, float>)    \
      return {__builtin_##function##f(x.raw)}; \
    else if constexpr (kFloating)              \
      return {__builtin_##function(x.raw)};    \
    else                                       \
      return x;                                \
  }
  BG_LIBM(floor, floor)
  BG_LIBM(ceil, ceil)
  BG_LIBM(round, rint)  // to even: the rounding mode is never changed
  BG_LIBM(trunc, trunc)
  BG_LIBM(sqrt, sqrt)
  BG_LIBM(exp, exp)
  BG_LIBM(exp2, exp2)
  BG_LIBM(expm1, expm1)
  BG_LIBM(log, log)
  BG_LIBM(log2, log2)
  BG_LIBM(log10, log10)
  BG_LIBM(log1p, log1p)
  BG_LIBM(sin, sin)
  BG_LIBM(cos, cos)
  BG_LIBM(tan, tan)
  BG_LIBM(asin, asin)
  BG_LIBM(acos, acos)
  BG_LIBM(atan, atan)
  BG_LIBM(sinh, sinh)
  BG_LIBM(cosh, cosh)
  BG_LIBM(tanh, tanh)
  BG_LIBM(asinh, asinh)
  BG_LIBM(acosh, acosh)
  BG_LIBM(atanh, atanh)
  BG_LIBM(erf, erf)
  BG_LIBM(erfc, erfc)
#undef BG_LIBM

#define BG_LIBM(name)                                                   \
  static BG_INLINE Scalar name(Scalar x, Scalar y) requires kFloating { \
    if constexpr (std::is_same_v<T, float>)                             \
      return {__builtin_##name##f(x.raw, y.raw)};                       \
    else                                                                \
      return {__builtin_##name(x.raw, y.raw)};                          \
  }
  BG_LIBM(atan2)
  BG_LIBM(hypot)
  BG_LIBM(fmod)
  BG_LIBM(copysign)
  BG_LIBM(nextafter)
#undef BG_LIBM

  /// Integers: by squaring, wrapping; 0 for a negative exponent, which callers reject beforehand.
  static BG_INLINE Scalar pow(Scalar base, Scalar exponent) {
    if constexpr (std::is_same_v<T, float>) {
      return {__builtin_powf(base.raw, exponent.raw)};
    } else if constexpr (kFloating) {
      return {__builtin_pow(base.raw, exponent.raw)};
    } else {
      if (exponent < Scalar{0}) return {0};
      Scalar result{1};
      for (Unsigned e = static_cast<Unsigned>(exponent.raw); e != 0;
           e = static_cast<Unsigned>(e >> 1)) {
        if (e & 1) result = result * base;
        base = base * base;
      }
      return result;
    }
  }

 private:
  using Unsigned = typename std::conditional_t<std::is_integral_v<Raw>, std::make_unsigned<Raw>,
                                               std::type_identity<Raw>>::type;
  // Narrow types would promote to int, whose overflow is undefined.
  using Wide = std::conditional_t<(sizeof(T) < 4), std::uint32_t, Unsigned>;
  static constexpr Unsigned kBits = static_cast<Unsigned>(8 * sizeof(T));

  static BG_INLINE Wide wide(Scalar a) { return static_cast<Wide>(a.raw); }
  static BG_INLINE Scalar wrap(Wide value) { return {static_cast<Raw>(value)}; }
};

}  // namespace baregrad

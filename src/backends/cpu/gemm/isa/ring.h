// Ring<T>: a vector of T with the few operations a product needs.
//
// Floats use Highway. Integers use the compiler's own vectors, which multiply 64-bit integers on
// every instruction set and wrap. Bools multiply by `and` and add by `or`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <hwy/highway.h>

#include "backends/cpu/simd/vec.h"

namespace baregrad::kernels::HWY_NAMESPACE {

/// A bool as a byte of 0 or 1.
struct Logical {
  std::uint8_t raw;
};

#if HWY_TARGET == HWY_AVX3
constexpr int kVectorBytes = 64;
#elif HWY_TARGET == HWY_AVX2
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <class T>
struct IntRing {
  using Ring = IntRing;
  using Lane = std::conditional_t<std::is_same_v<T, Logical>, std::uint8_t, T>;
  static_assert(std::is_unsigned_v<Lane>);
  typedef Lane Vector __attribute__((vector_size(kVectorBytes)));
  static constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(Lane));
  static constexpr bool kMasked = false;
  Vector raw;

  static BG_INLINE Ring zero() { return {Vector{}}; }
  static BG_INLINE Ring splat(const T* at) {
    Lane lane;
    __builtin_memcpy(&lane, at, sizeof(Lane));
    return {Vector{} + lane};
  }
  static BG_INLINE Ring load(const T* at) {
    Ring v;
    __builtin_memcpy(&v.raw, at, sizeof(Vector));
    return v;
  }
  /// The first n elements; only called on padded memory.
  static BG_INLINE Ring load_part(const T* at, int) { return load(at); }
  BG_INLINE void store(T* at) const { __builtin_memcpy(at, &raw, sizeof(Vector)); }
  BG_INLINE void store_part(T* at, int n) const {
    alignas(kVectorBytes) Lane lanes[kLanes];
    __builtin_memcpy(lanes, &raw, sizeof(Vector));
    __builtin_memcpy(at, lanes, static_cast<std::size_t>(n) * sizeof(Lane));
  }
  BG_INLINE void add_product(Ring a, Ring b) {
    if constexpr (std::is_same_v<T, Logical>)
      raw |= a.raw & b.raw;
    else
      raw += a.raw * b.raw;
  }
  static BG_INLINE Ring add(Ring a, Ring b) {
    if constexpr (std::is_same_v<T, Logical>)
      return {a.raw | b.raw};
    else
      return {a.raw + b.raw};
  }
};

/// Floats in the vectors of tag D.
template <class T, class D_>
struct FloatRing {
  using D = D_;
  using Ring = FloatRing;
  static constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
  static constexpr bool kMasked = HWY_TARGET <= HWY_AVX2;
  hn::Vec<D> raw;

  static BG_INLINE Ring zero() { return {hn::Zero(D())}; }
  static BG_INLINE Ring splat(const T* at) { return {hn::Set(D(), *at)}; }
  static BG_INLINE Ring load(const T* at) { return {hn::LoadU(D(), at)}; }
  /// The first n lanes, 0 < n <= kLanes.
  static BG_INLINE Ring load_part(const T* at, int n) {
    if constexpr (kMasked)
      return {hn::MaskedLoad(hn::FirstN(D(), static_cast<std::size_t>(n)), D(), at)};
    else
      return load(at);
  }
  BG_INLINE void store(T* at) const { hn::StoreU(raw, D(), at); }
  BG_INLINE void store_part(T* at, int n) const {
#if HWY_TARGET <= HWY_AVX3
    hn::BlendedStore(raw, hn::FirstN(D(), static_cast<std::size_t>(n)), D(), at);
#else
    if (n == kLanes)
      store(at);
    else
      Vec<T>{raw}.store_part(at, static_cast<std::size_t>(n));
#endif
  }
  /// this += a * b, in place. With 16 registers GCC's allocator moves sums between registers and
  /// spills some, which costs a tenth of the speed; inline assembly fixes their place.
  BG_INLINE void add_product(Ring a, Ring b) {
#if HWY_TARGET == HWY_AVX2
    if constexpr (std::is_same_v<T, float>)
      asm("vfmadd231ps %2, %1, %0" : "+x"(raw.raw) : "x"(a.raw.raw), "x"(b.raw.raw));
    else
      asm("vfmadd231pd %2, %1, %0" : "+x"(raw.raw) : "x"(a.raw.raw), "x"(b.raw.raw));
#else
    raw = hn::MulAdd(a.raw, b.raw, raw);
#endif
  }
  static BG_INLINE Ring add(Ring a, Ring b) { return {hn::Add(a.raw, b.raw)}; }
};

template <class T>
struct RingOf {
  using type = IntRing<T>;
};
template <>
struct RingOf<float> {
  using type = FloatRing<float, hn::ScalableTag<float>>;
};
template <>
struct RingOf<double> {
  using type = FloatRing<double, hn::ScalableTag<double>>;
};
template <class T>
using Ring = typename RingOf<T>::type;

}  // namespace baregrad::kernels::HWY_NAMESPACE

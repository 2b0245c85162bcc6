// Vec<T>: a full Highway vector of float or double with the interface functors.h asks of a value.
//
// Only floats: integer kernels are plain loops over Scalar<T>, which compilers vectorise well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <hwy/highway.h>

#include "backends/cpu/simd/math_f32.h"
#include "ops/scalar_math.h"

namespace baregrad::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct Mask {
  using D = hn::ScalableTag<T>;
  hn::Mask<D> raw;

  friend BG_INLINE Mask operator&(Mask a, Mask b) { return {hn::And(a.raw, b.raw)}; }
  friend BG_INLINE Mask operator|(Mask a, Mask b) { return {hn::Or(a.raw, b.raw)}; }
  friend BG_INLINE Mask operator^(Mask a, Mask b) { return {hn::Xor(a.raw, b.raw)}; }
  friend BG_INLINE Mask operator!(Mask a) { return {hn::Not(a.raw)}; }
};

template <class T>
struct Vec {
  static_assert(std::is_floating_point_v<T>);
  static constexpr bool kFloating = true;
  static constexpr std::size_t kLanes = HWY_LANES(T);
  using D = hn::ScalableTag<T>;
  using M = Mask<T>;

  hn::Vec<D> raw;

  static BG_INLINE Vec load(const T* from) { return {hn::LoadU(D(), from)}; }
  BG_INLINE void store(T* to) const { hn::StoreU(raw, D(), to); }

  /// The first n elements, 0 < n < kLanes, and zeros; nothing beyond them is read.
  static BG_INLINE Vec load_part(const T* from, std::size_t n) {
#if HWY_TARGET <= HWY_AVX2
    return {hn::MaskedLoad(hn::FirstN(D(), n), D(), from)};
#else
    HWY_ALIGN T lanes[kLanes] = {};
    copy_part(from, lanes, n);
    return {hn::Load(D(), lanes)};
#endif
  }
  /// Writes the first n elements, 0 < n < kLanes, and nothing beyond them.
  BG_INLINE void store_part(T* to, std::size_t n) const {
#if HWY_TARGET <= HWY_AVX3
    hn::BlendedStore(raw, hn::FirstN(D(), n), D(), to);
#else
    // AVX2's masked store takes tens of cycles on some CPUs.
    HWY_ALIGN T lanes[kLanes];
    hn::Store(raw, D(), lanes);
    copy_part(lanes, to, n);
#endif
  }

  static BG_INLINE Vec constant(double value) { return {hn::Set(D(), static_cast<T>(value))}; }

  friend BG_INLINE Vec operator+(Vec a, Vec b) { return {hn::Add(a.raw, b.raw)}; }
  friend BG_INLINE Vec operator-(Vec a, Vec b) { return {hn::Sub(a.raw, b.raw)}; }
  friend BG_INLINE Vec operator*(Vec a, Vec b) { return {hn::Mul(a.raw, b.raw)}; }
  friend BG_INLINE Vec operator/(Vec a, Vec b) { return {hn::Div(a.raw, b.raw)}; }
  friend BG_INLINE Vec operator-(Vec a) { return {hn::Neg(a.raw)}; }

  friend BG_INLINE M operator==(Vec a, Vec b) { return {hn::Eq(a.raw, b.raw)}; }
  friend BG_INLINE M operator!=(Vec a, Vec b) { return {hn::Ne(a.raw, b.raw)}; }
  friend BG_INLINE M operator<(Vec a, Vec b) { return {hn::Lt(a.raw, b.raw)}; }
  friend BG_INLINE M operator<=(Vec a, Vec b) { return {hn::Le(a.raw, b.raw)}; }
  friend BG_INLINE M operator>(Vec a, Vec b) { return {hn::Gt(a.raw, b.raw)}; }
  friend BG_INLINE M operator>=(Vec a, Vec b) { return {hn::Ge(a.raw, b.raw)}; }

  static BG_INLINE Vec select(M mask, Vec yes, Vec no) {
    return {hn::IfThenElse(mask.raw, yes.raw, no.raw)};
  }
  static BG_INLINE M is_nan(Vec x) { return {hn::IsNaN(x.raw)}; }

  static BG_INLINE Vec abs(Vec x) { return {hn::Abs(x.raw)}; }
  static BG_INLINE Vec sqrt(Vec x) { return {hn::Sqrt(x.raw)}; }
  static BG_INLINE Vec copysign(Vec x, Vec y) { return {hn::CopySign(x.raw, y.raw)}; }

#if HWY_TARGET == HWY_SCALAR
  // Highway 1.0.3 is wrong here: the float below 0.5 rounds to 1, and double zeros change their
  // sign.
  static BG_INLINE Vec floor(Vec x) { return {hn::Set(D(), Scalar<T>::floor({x.raw.raw}).raw)}; }
  static BG_INLINE Vec ceil(Vec x) { return {hn::Set(D(), Scalar<T>::ceil({x.raw.raw}).raw)}; }
  static BG_INLINE Vec round(Vec x) { return {hn::Set(D(), Scalar<T>::round({x.raw.raw}).raw)}; }
  static BG_INLINE Vec trunc(Vec x) { return {hn::Set(D(), Scalar<T>::trunc({x.raw.raw}).raw)}; }
#else
  static BG_INLINE Vec floor(Vec x) { return {hn::Floor(x.raw)}; }
  static BG_INLINE Vec ceil(Vec x) { return {hn::Ceil(x.raw)}; }
  static BG_INLINE Vec round(Vec x) { return {hn::Round(x.raw)}; }
  static BG_INLINE Vec trunc(Vec x) { return {hn::Trunc(x.raw)}; }
#endif

  /// One step of the bit pattern: floats of one sign have the order of their bits.
  static BG_INLINE Vec nextafter(Vec x, Vec y) {
    const hn::RebindToSigned<D> di;
    const Vec zero = constant(0);
    const auto bits = hn::BitCast(di, x.raw);
    const auto one = hn::Set(di, 1);
    const Vec up{hn::BitCast(D(), hn::Add(bits, one))};
    const Vec down{hn::BitCast(D(), hn::Sub(bits, one))};
    const Vec least = copysign({hn::BitCast(D(), one)}, y);
    // Away from zero the magnitude grows, whatever the sign.
    const Vec moved = select((x < y) ^ (x < zero), up, down);
    const Vec result = select(x == zero, least, moved);
    return select(is_nan(x) | is_nan(y), x + y, select(x == y, y, result));
  }

// Lane by lane through libm, which is exact to one or two ULP in double.
#define BG_LANES(name)                                         \
  static BG_INLINE Vec name(Vec x) {                           \
    HWY_ALIGN T lanes[kLanes];                                 \
    hn::Store(x.raw, D(), lanes);                              \
    for (T & lane : lanes) lane = Scalar<T>::name({lane}).raw; \
    return {hn::Load(D(), lanes)};                             \
  }
#define BG_LANES2(name)                                        \
  static BG_INLINE Vec name(Vec x, Vec y) {                    \
    HWY_ALIGN T lanes[kLanes];                                 \
    HWY_ALIGN T others[kLanes];                                \
    hn::Store(x.raw, D(), lanes);                              \
    hn::Store(y.raw, D(), others);                             \
    for (std::size_t i = 0; i < kLanes; ++i) {                 \
      lanes[i] = Scalar<T>::name({lanes[i]}, {others[i]}).raw; \
    }                                                          \
    return {hn::Load(D(), lanes)};                             \
  }
// Floats have vector code of their own.
#define BG_MATH(name)                                                  \
  static BG_INLINE Vec name(Vec x) requires std::is_same_v<T, float> { \
    return {math::name(x.raw)};                                        \
  }                                                                    \
  BG_LANES(name)
#define BG_MATH2(name)                                                        \
  static BG_INLINE Vec name(Vec x, Vec y) requires std::is_same_v<T, float> { \
    return {math::name(x.raw, y.raw)};                                        \
  }                                                                           \
  BG_LANES2(name)
  BG_MATH(exp)
  BG_MATH(exp2)
  BG_MATH(expm1)
  BG_MATH(log)
  BG_MATH(log2)
  BG_MATH(log10)
  BG_MATH(log1p)
  BG_MATH(sin)
  BG_MATH(cos)
  BG_MATH(tan)
  BG_MATH(asin)
  BG_MATH(acos)
  BG_MATH(atan)
  BG_MATH(sinh)
  BG_MATH(cosh)
  BG_MATH(tanh)
  BG_MATH(asinh)
  BG_MATH(acosh)
  BG_MATH(atanh)
  BG_MATH(erf)
  BG_LANES(erfc)
  BG_MATH2(pow)
  BG_MATH2(atan2)
  BG_MATH2(hypot)
  BG_LANES2(fmod)
#undef BG_MATH
#undef BG_MATH2
#undef BG_LANES
#undef BG_LANES2

// Activations: where these are missing, functors.h has the formula.
#define BG_ACTIVATION(name) \
  static BG_INLINE Vec name(Vec x) requires std::is_same_v<T, float> { return {math::name(x.raw)}; }
  BG_ACTIVATION(sigmoid)
  BG_ACTIVATION(gelu)
  BG_ACTIVATION(gelu_tanh)
  BG_ACTIVATION(silu)
  BG_ACTIVATION(mish)
#undef BG_ACTIVATION
  static BG_INLINE Vec softplus(Vec x, double beta,
                                double threshold) requires std::is_same_v<T, float> {
    return {math::softplus(x.raw, static_cast<float>(beta), static_cast<float>(threshold))};
  }
  static BG_INLINE Vec logaddexp(Vec x, Vec y) requires std::is_same_v<T, float> {
    return {math::logaddexp(x.raw, y.raw)};
  }

 private:
  /// At most log2(kLanes) moves of fixed sizes; the compiler would turn a loop into a call.
  static BG_INLINE void copy_part(const T* from, T* to, std::size_t n) {
    if constexpr (kLanes > 8) n = copy_block<8>(from, to, n);
    if constexpr (kLanes > 4) n = copy_block<4>(from, to, n);
    if constexpr (kLanes > 2) n = copy_block<2>(from, to, n);
    if constexpr (kLanes > 1) copy_block<1>(from, to, n);
  }
  template <std::size_t kBlock>
  static BG_INLINE std::size_t copy_block(const T*& from, T*& to, std::size_t n) {
    if (n < kBlock) return n;
    __builtin_memcpy(to, from, kBlock * sizeof(T));
    from += kBlock;
    to += kBlock;
    return n - kBlock;
  }
};

}  // namespace baregrad::kernels::HWY_NAMESPACE

// f64 building blocks of the f32 math functions: near full double precision, finite arguments only.
#pragma once

#include <math.h>

#include <hwy/highway.h>

namespace baregrad::kernels::HWY_NAMESPACE::math {

namespace hn = hwy::HWY_NAMESPACE;

#define BAREGRAD_LAMBDA_INLINE __attribute__((always_inline))

template <class V>
HWY_INLINE V splat(double value) {
  return hn::Set(hn::DFromV<V>(), static_cast<hn::TFromV<V>>(value));
}

/// c0 + c1 x + c2 x^2 + ... by Horner's rule: the fewest operations, in one dependent chain. For
/// sums that are computed beside a longer chain.
template <class V>
HWY_INLINE V horner(V, double c0) {
  return splat<V>(c0);
}
template <class V, class... Cs>
HWY_INLINE V horner(V x, double c0, Cs... cs) {
  return hn::MulAdd(horner(x, cs...), x, splat<V>(c0));
}

/// c0 + c2 x2 + c4 x2^2 + ...: every other coefficient.
template <class V>
HWY_INLINE V every_other(V, double c0) {
  return splat<V>(c0);
}
template <class V>
HWY_INLINE V every_other(V, double c0, double) {
  return splat<V>(c0);
}
template <class V, class... Cs>
HWY_INLINE V every_other(V x2, double c0, double, double c2, Cs... cs) {
  return hn::MulAdd(every_other(x2, c2, cs...), x2, splat<V>(c0));
}

/// The same sum with even and odd powers in two chains: half the latency for one more product, x^2,
/// which callers often need anyway.
template <class V, class... Cs>
HWY_INLINE V poly(V x, double c0, Cs... cs) {
  const V x2 = hn::Mul(x, x);
  return hn::MulAdd(every_other(x2, cs...), x, every_other(x2, c0, cs...));
}

// min(x, limit) and max(x, limit) that propagate a NaN in x. hn::Min(limit, x) does that in one
// instruction on x86, but not on the scalar target.
template <class V>
HWY_INLINE V at_most(V x, double limit) {
#if HWY_TARGET == HWY_SCALAR
  return hn::IfThenElse(hn::Gt(x, splat<V>(limit)), splat<V>(limit), x);
#else
  return hn::Min(splat<V>(limit), x);
#endif
}
template <class V>
HWY_INLINE V at_least(V x, double limit) {
#if HWY_TARGET == HWY_SCALAR
  return hn::IfThenElse(hn::Lt(x, splat<V>(limit)), splat<V>(limit), x);
#else
  return hn::Max(splat<V>(limit), x);
#endif
}

/// f(double vector) for all lanes of an f32 vector, half a vector at a time; rounded once.
template <class V, class F>
HWY_INLINE V in_f64(V x, F f) {
  const hn::DFromV<V> d;
#if HWY_TARGET == HWY_SCALAR
  // Not DemoteTo: Highway's scalar version saturates where IEEE overflows to infinity.
  return hn::Set(
      d, static_cast<float>(hn::GetLane(f(hn::PromoteTo(hn::Rebind<double, decltype(d)>(), x)))));
#else
  const hn::Half<decltype(d)> half;
  const hn::Repartition<double, decltype(d)> wide;
  const auto lo = f(hn::PromoteTo(wide, hn::LowerHalf(half, x)));
  const auto hi = f(hn::PromoteTo(wide, hn::UpperHalf(half, x)));
  return hn::Combine(d, hn::DemoteTo(half, hi), hn::DemoteTo(half, lo));
#endif
}

template <class V, class F>
HWY_INLINE V in_f64(V x, V y, F f) {
  const hn::DFromV<V> d;
#if HWY_TARGET == HWY_SCALAR
  const hn::Rebind<double, decltype(d)> wide;
  return hn::Set(
      d, static_cast<float>(hn::GetLane(f(hn::PromoteTo(wide, x), hn::PromoteTo(wide, y)))));
#else
  const hn::Half<decltype(d)> half;
  const hn::Repartition<double, decltype(d)> wide;
  const auto lo =
      f(hn::PromoteTo(wide, hn::LowerHalf(half, x)), hn::PromoteTo(wide, hn::LowerHalf(half, y)));
  const auto hi =
      f(hn::PromoteTo(wide, hn::UpperHalf(half, x)), hn::PromoteTo(wide, hn::UpperHalf(half, y)));
  return hn::Combine(d, hn::DemoteTo(half, hi), hn::DemoteTo(half, lo));
#endif
}

namespace wide {

/// e^x, with x limited to [-708, 709]: beyond, every float is 0 or infinite anyway.
template <class W>
HWY_INLINE W exp(W x) {
  const hn::DFromV<W> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  x = at_least(at_most(x, 709.0), -708.0);
  // Adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits.
  const W magic = splat<W>(0x1.8p52);
  const W t = hn::MulAdd(x, splat<W>(0x1.71547652b82fep0), magic);
  const W n = hn::Sub(t, magic);
  W r = hn::NegMulAdd(n, splat<W>(0x1.62e42feep-1), x);
  r = hn::NegMulAdd(n, splat<W>(0x1.a39ef35793c76p-33), r);
  // |r| <= ln2 / 2; relative error 2^-58.
  const W q = poly(r, 0x1.000000000000ap-1, 0x1.55555555554fcp-3, 0x1.555555555067bp-5,
                   0x1.1111111127257p-7, 0x1.6c16c1848d831p-10, 0x1.a01a012dd547ep-13,
                   0x1.a01999128cabfp-16, 0x1.71df1ce668897p-19, 0x1.28ae4e47596bcp-22,
                   0x1.ad8dcc53f5ac6p-26);
  const W y = hn::Add(splat<W>(1.0), hn::MulAdd(hn::Mul(r, r), q, r));
  const auto scale = hn::Add(hn::ShiftLeft<52>(hn::BitCast(du, t)), hn::BitCast(du, splat<W>(1.0)));
  return hn::Mul(y, hn::BitCast(d, scale));
}

/// x = 2^e * m with m in [sqrt(1/2), sqrt(2)), for normal x > 0.
template <class W>
struct Split {
  W e;
  W m;
  W inverse_scale;  // 2^-e
};
template <class W>
HWY_INLINE Split<W> split(W x) {
  const hn::DFromV<W> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  constexpr uint64_t kOne = 0x3ff0000000000000;
  constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  const auto bits = hn::Add(hn::BitCast(du, x), hn::Set(du, kOne - kSqrtHalf));
  const auto biased = hn::ShiftRight<52>(bits);
  const auto m = hn::Add(hn::And(bits, hn::Set(du, 0x000fffffffffffff)), hn::Set(du, kSqrtHalf));
  // An integer below 2^52, or-ed into the bits of 2^52, becomes a double without a conversion.
  const auto shifted = hn::Or(biased, hn::BitCast(du, splat<W>(0x1p52)));
  const auto inverse = hn::ShiftLeft<52>(hn::Sub(hn::Set(du, uint64_t{2046}), biased));
  return {hn::Sub(hn::BitCast(d, shifted), splat<W>(0x1p52 + 1023)), hn::BitCast(d, m),
          hn::BitCast(d, inverse)};
}

/// e * ln2 + log(1 + f), |f| < 0.42, by log(1 + f) = 2 artanh(f / (2 + f)). Relative error 2^-51.
template <class W>
HWY_INLINE W log_parts(W e, W f) {
  const W s = hn::Div(f, hn::Add(f, splat<W>(2.0)));
  const W z = hn::Mul(s, s);
  const W p =
      poly(z, 0x1.5555555555558p-1, 0x1.9999999995284p-2, 0x1.2492492e03d5p-2, 0x1.c71c62c9cb7e9p-3,
           0x1.7462bd218b3e2p-3, 0x1.39fd3c2df8e5bp-3, 0x1.2b66b9bfa57aep-3);
  const W log_f = hn::MulAdd(hn::Mul(s, z), p, hn::Add(s, s));
  return hn::MulAdd(e, splat<W>(0x1.62e42feep-1),
                    hn::MulAdd(e, splat<W>(0x1.a39ef35793c76p-33), log_f));
}

/// log(x) for normal x > 0.
template <class W>
HWY_INLINE W log(W x) {
  const Split<W> s = split(x);
  return log_parts(s.e, hn::Sub(s.m, splat<W>(1.0)));
}

/// log(1 + x) for finite x >= 0.
template <class W>
HWY_INLINE W log1p(W x) {
  const W one = splat<W>(1.0);
  const Split<W> s = split(hn::Add(one, x));
  return log_parts(s.e, hn::MulAdd(x, s.inverse_scale, hn::Sub(s.inverse_scale, one)));
}

/// The angle of the point (den, num), 0 <= num <= den, den > 0. Relative error 2^-45.
template <class W>
HWY_INLINE W atan_ratio(W num, W den) {
  // Above tan(pi/8) rotate by -pi/4, so that a short polynomial is enough, with one division.
  const auto rotate = hn::Gt(num, hn::Mul(den, splat<W>(0x1.a827999fcef32p-2)));
  const W n = hn::IfThenElse(rotate, hn::Sub(num, den), num);
  const W m = hn::IfThenElse(rotate, hn::Add(num, den), den);
  const W t = hn::Div(n, m);
  const W z = hn::Mul(t, t);
  const W p = poly(z, -0x1.555555550be2cp-2, 0x1.9999992bd96c9p-3, -0x1.24922d0880c86p-3,
                   0x1.c71572d575df2p-4, -0x1.73e0d946e9cb8p-4, 0x1.35fc3940b6a7ep-4,
                   -0x1.e26f44ea3b59fp-5, 0x1.f9b4aacdf3489p-6);
  const W a = hn::MulAdd(hn::Mul(t, z), p, t);
  return hn::Add(a, hn::IfThenElseZero(rotate, splat<W>(0x1.921fb54442d18p-1)));
}

/// asin(r) for 0 <= r <= 1/2, z = r^2. Relative error 2^-48.
template <class W>
HWY_INLINE W asin_half(W r, W z) {
  const W p =
      poly(z, 0x1.5555555541a2p-3, 0x1.3333335092d74p-4, 0x1.6db6cc4bace8fp-5, 0x1.f1caf5699cd1fp-6,
           0x1.6e440d3411f99p-6, 0x1.1f8037a5c9f55p-6, 0x1.9b8d695d5435dp-7, 0x1.25578cc5b9d67p-6,
           -0x1.dd9fe0af84e78p-8, 0x1.0201abddc6809p-5);
  return hn::MulAdd(hn::Mul(r, z), p, r);
}

/// sin and cos of x reduced by n quarter turns; n is in the low bits of `quadrant`.
template <class W>
struct SinCos {
  W sin;
  W cos;
  hn::VFromD<hn::RebindToUnsigned<hn::DFromV<W>>> quadrant;
};
/// |x| <= 2^25. The three parts of pi/2 hold 27, 27 and 53 bits: the first two products are exact.
template <class W>
HWY_INLINE SinCos<W> reduced_sin_cos(W x) {
  const hn::RebindToUnsigned<hn::DFromV<W>> du;
  const W magic = splat<W>(0x1.8p52);
  const W t = hn::MulAdd(x, splat<W>(0x1.45f306dc9c883p-1), magic);
  const W n = hn::Sub(t, magic);
  W r = hn::NegMulAdd(n, splat<W>(0x1.921fb54p0), x);
  r = hn::NegMulAdd(n, splat<W>(0x1.10b4610p-30), r);
  r = hn::NegMulAdd(n, splat<W>(0x1.a62633145c06ep-58), r);
  const W z = hn::Mul(r, r);
  // Relative errors 2^-47 and 2^-43.
  const W s = poly(z, 1.0, -0x1.5555555552228p-3, 0x1.1111110c85fc3p-7, -0x1.a019f937b9ef3p-13,
                   0x1.71d76c2e6b997p-19, -0x1.a9614c443c89cp-26);
  const W c = poly(z, 1.0, -0x1.ffffffffe9835p-2, 0x1.55555545c0de1p-5, -0x1.6c16b345df9ep-10,
                   0x1.a00eb82aced6bp-16, -0x1.23c937f1ce67p-22);
  return {hn::Mul(r, s), c, hn::BitCast(du, t)};
}

}  // namespace wide
}  // namespace baregrad::kernels::HWY_NAMESPACE::math

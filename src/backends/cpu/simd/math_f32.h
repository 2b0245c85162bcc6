// f32 SIMD math: every transcendental function of ops.def over one Highway vector.
#pragma once

#include "backends/cpu/simd/math_f32_gelu.h"
#include "backends/cpu/simd/math_f32_hot.h"
#include "backends/cpu/simd/math_f32_wide.h"

// Largest error in ULP over all inputs, on every ISA (tests/backends/test_ulp_f32.cpp):
//
//   exp, log                                                    1
//   exp2 expm1 log1p log2 tanh erf sigmoid silu gelu gelu_tanh  2
//   all others, computed in f64 and rounded once                0.51
//
// except that a logaddexp near 0, where its terms cancel, is exact to 2^-50 absolutely. Special
// values follow C99 annex F: NaN propagates, denormals are not flushed, signs of zeros are kept.
// gelu, gelu_tanh, silu and mish of -inf are NaN, like -inf * 0.

namespace baregrad::kernels::HWY_NAMESPACE::math {

/// x tanh(log(1 + e^x)) = x w / (w + 2), w = e^x (e^x + 2).
template <class V>
HWY_INLINE V mish(V x) {
  const hn::DFromV<V> d;
  const V y = in_f64(x, [](auto w) BAREGRAD_LAMBDA_INLINE {
    using W = decltype(w);
    const W two = splat<W>(2.0);
    const W e = wide::exp(at_most(w, 60.0));
    const W n = hn::Mul(e, hn::Add(e, two));
    return hn::Mul(w, hn::Div(n, hn::Add(n, two)));
  });
  return hn::IfThenElse(hn::Eq(x, hn::Neg(hn::Inf(d))), hn::NaN(d), y);
}

/// log(1 + e^(beta x)) / beta, and x itself where beta x > threshold.
template <class V>
HWY_INLINE V softplus(V x, float beta, float threshold) {
  const hn::DFromV<V> d;
  const V y = in_f64(x, [beta](auto w) BAREGRAD_LAMBDA_INLINE {
    using W = decltype(w);
    const W z = hn::Mul(w, splat<W>(beta));
    const W e = wide::exp(hn::Neg(hn::Abs(z)));
    const W positive = hn::IfThenElseZero(hn::Gt(z, hn::Zero(hn::DFromV<W>())), z);
    return hn::Mul(hn::Add(positive, wide::log1p(e)), splat<W>(1.0 / beta));
  });
  // log1p does not propagate a NaN exponential.
  const auto pass =
      hn::Or(hn::Gt(hn::Mul(x, hn::Set(d, beta)), hn::Set(d, threshold)), hn::IsNaN(x));
  return hn::IfThenElse(pass, x, y);
}

/// Lane by lane: for arguments that are too rare or too large for vector code.
template <class V, class F>
HWY_INLINE V by_lane(V x, F f) {
  const hn::DFromV<V> d;
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    lanes[i] = static_cast<float>(f(static_cast<double>(lanes[i])));
  }
  return hn::Load(d, lanes);
}

/// y where |x| is small enough for wide::reduced_sin_cos, else f(x) lane by lane. The choice for a
/// lane depends on its own value alone.
template <class V, class F>
HWY_INLINE V by_lane_where_large(V x, V y, F f) {
  const hn::DFromV<V> d;
  const auto near = hn::Le(hn::Abs(x), splat<V>(0x1p25));
  if (HWY_LIKELY(hn::AllTrue(d, near))) return y;
  return hn::IfThenElse(near, y, by_lane(x, f));
}

/// sin(x + ahead * pi / 2).
template <class W>
HWY_INLINE W sin_of_quarters_ahead(W x, uint64_t ahead) {
  const hn::DFromV<W> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const wide::SinCos<W> t = wide::reduced_sin_cos(x);
  const auto q = hn::Add(t.quadrant, hn::Set(du, ahead));
  const auto odd = hn::RebindMask(d, hn::TestBit(q, hn::Set(du, uint64_t{1})));
  const auto sign = hn::ShiftLeft<62>(hn::And(q, hn::Set(du, uint64_t{2})));
  return hn::Xor(hn::IfThenElse(odd, t.cos, t.sin), hn::BitCast(d, sign));
}

template <class V>
HWY_INLINE V sin(V x) {
  const V y = in_f64(x, [](auto w) BAREGRAD_LAMBDA_INLINE { return sin_of_quarters_ahead(w, 0); });
  return by_lane_where_large(x, y, [](double v) { return ::sin(v); });
}

template <class V>
HWY_INLINE V cos(V x) {
  const V y = in_f64(x, [](auto w) BAREGRAD_LAMBDA_INLINE { return sin_of_quarters_ahead(w, 1); });
  return by_lane_where_large(x, y, [](double v) { return ::cos(v); });
}

template <class V>
HWY_INLINE V tan(V x) {
  const V y = in_f64(x, [](auto w) BAREGRAD_LAMBDA_INLINE {
    using W = decltype(w);
    const hn::DFromV<W> d;
    const hn::RebindToUnsigned<decltype(d)> du;
    const wide::SinCos<W> t = wide::reduced_sin_cos(w);
    const auto odd = hn::RebindMask(d, hn::TestBit(t.quadrant, hn::Set(du, uint64_t{1})));
    return hn::Div(hn::IfThenElse(odd, hn::Neg(t.cos), t.sin), hn::IfThenElse(odd, t.sin, t.cos));
  });
  return by_lane_where_large(x, y, [](double v) { return ::tan(v); });
}

/// asin of |x|: the half-range asin of r, and whether r is sqrt((1 - |x|) / 2) instead of |x|.
template <class W>
HWY_INLINE W asin_reduced(W a, hn::Mask<hn::DFromV<W>> folded) {
  const W half = splat<W>(0.5);
  const W z = hn::IfThenElse(folded, hn::NegMulAdd(half, a, half), hn::Mul(a, a));
  return wide::asin_half(hn::IfThenElse(folded, hn::Sqrt(z), a), z);
}

template <class V>
HWY_INLINE V asin(V x) {
  const V y = in_f64(hn::Abs(x), [](auto a) BAREGRAD_LAMBDA_INLINE {
    using W = decltype(a);
    const auto folded = hn::Gt(a, splat<W>(0.5));
    const W p = asin_reduced(a, folded);
    return hn::IfThenElse(folded, hn::NegMulAdd(splat<W>(2.0), p, splat<W>(0x1.921fb54442d18p0)),
                          p);
  });
  return hn::CopySign(y, x);
}

template <class V>
HWY_INLINE V acos(V x) {
  return in_f64(x, [](auto w) BAREGRAD_LAMBDA_INLINE {
    using W = decltype(w);
    const hn::DFromV<W> d;
    const W a = hn::Abs(w);
    const auto folded = hn::Gt(a, splat<W>(0.5));
    const W p = asin_reduced(a, folded);
    // acos(|x|), and for negative x pi minus it.
    const W pos = hn::IfThenElse(folded, hn::Add(p, p), hn::Sub(splat<W>(0x1.921fb54442d18p0), p));
    return hn::IfThenElse(hn::Lt(w, hn::Zero(d)), hn::Sub(splat<W>(0x1.921fb54442d18p1), pos), pos);
  });
}

template <class V>
HWY_INLINE V atan(V x) {
  const V y = in_f64(hn::Abs(x), [](auto a) BAREGRAD_LAMBDA_INLINE {
    using W = decltype(a);
    const W one = splat<W>(1.0);
    const W b = at_most(a, 1e300);
    const auto steep = hn::Gt(b, one);
    const W t = wide::atan_ratio(hn::IfThenElse(steep, one, b), hn::IfThenElse(steep, b, one));
    return hn::IfThenElse(steep, hn::Sub(splat<W>(0x1.921fb54442d18p0), t), t);
  });
  return hn::CopySign(y, x);
}

/// The angle of the point (x, y).
template <class V>
HWY_INLINE V atan2(V y, V x) {
  const V angle = in_f64(y, x, [](auto wy, auto wx) BAREGRAD_LAMBDA_INLINE {
    using W = decltype(wy);
    const hn::DFromV<W> dw;
    const hn::RebindToSigned<decltype(dw)> di;
    // Finite replacements avoid inf / inf and 0 / 0 and give the angles that IEEE requires.
    const W ay = at_most(hn::Abs(wy), 1e300);
    const W ax = at_most(hn::Abs(wx), 1e300);
    const auto steep = hn::Gt(ay, ax);
    const W num = hn::IfThenElse(steep, ax, ay);
    const W den = at_least(hn::IfThenElse(steep, ay, ax), 1e-300);
    W t = wide::atan_ratio(num, den);
    t = hn::IfThenElse(steep, hn::Sub(splat<W>(0x1.921fb54442d18p0), t), t);
    const auto left = hn::RebindMask(dw, hn::Lt(hn::BitCast(di, wx), hn::Zero(di)));
    return hn::IfThenElse(left, hn::Sub(splat<W>(0x1.921fb54442d18p1), t), t);
  });
  const auto nan = hn::Or(hn::IsNaN(x), hn::IsNaN(y));
  return hn::IfThenElse(nan, hn::Add(x, y), hn::CopySign(angle, y));
}

template <class V>
HWY_INLINE V sinh(V x) {
  const V y = in_f64(hn::Abs(x), [](auto a) BAREGRAD_LAMBDA_INLINE {
    using W = decltype(a);
    const W e = wide::exp(a);
    const W large = hn::Mul(splat<W>(0.5), hn::Sub(e, hn::Div(splat<W>(1.0), e)));
    // Cancellation leaves 2^-40 at 2^-10; below that, use the series.
    const W small = hn::MulAdd(hn::Mul(hn::Mul(a, a), a), splat<W>(1.0 / 6.0), a);
    return hn::IfThenElse(hn::Lt(a, splat<W>(0x1p-10)), small, large);
  });
  return hn::CopySign(y, x);
}

template <class V>
HWY_INLINE V cosh(V x) {
  return in_f64(hn::Abs(x), [](auto a) BAREGRAD_LAMBDA_INLINE {
    using W = decltype(a);
    const W e = wide::exp(a);
    return hn::Mul(splat<W>(0.5), hn::Add(e, hn::Div(splat<W>(1.0), e)));
  });
}

template <class V>
HWY_INLINE V asinh(V x) {
  const hn::DFromV<V> d;
  const V a = hn::Abs(x);
  const V y = in_f64(a, [](auto w) BAREGRAD_LAMBDA_INLINE {
    using W = decltype(w);
    const W one = splat<W>(1.0);
    const W w2 = hn::Mul(w, w);
    return wide::log1p(hn::Add(w, hn::Div(w2, hn::Add(one, hn::Sqrt(hn::Add(one, w2))))));
  });
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, hn::Inf(d)), y, a), x);
}

template <class V>
HWY_INLINE V acosh(V x) {
  const hn::DFromV<V> d;
  const V one = splat<V>(1.0);
  const V y = in_f64(x, [](auto w) BAREGRAD_LAMBDA_INLINE {
    using W = decltype(w);
    const W t = hn::Sub(w, splat<W>(1.0));
    return wide::log1p(hn::Add(t, hn::Sqrt(hn::Mul(t, hn::Add(t, splat<W>(2.0))))));
  });
  const V inside = hn::IfThenElse(hn::Lt(x, hn::Inf(d)), y, x);
  return hn::IfThenElse(hn::Lt(x, one), hn::NaN(d), inside);
}

template <class V>
HWY_INLINE V atanh(V x) {
  const hn::DFromV<V> d;
  const V one = splat<V>(1.0);
  const V a = hn::Abs(x);
  const V y = in_f64(a, [](auto w) BAREGRAD_LAMBDA_INLINE {
    using W = decltype(w);
    return hn::Mul(splat<W>(0.5), wide::log1p(hn::Div(hn::Add(w, w), hn::Sub(splat<W>(1.0), w))));
  });
  const V edge = hn::IfThenElse(hn::Eq(a, one), hn::Inf(d), hn::NaN(d));
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, one), y, edge), x);
}

/// x^y with the special cases of C99 annex F.
template <class V>
HWY_INLINE V pow(V x, V y) {
  const hn::DFromV<V> d;
  const V zero = hn::Zero(d);
  const V one = splat<V>(1.0);
  const V a = hn::Abs(x);
  V r = in_f64(a, y, [](auto base, auto exponent) BAREGRAD_LAMBDA_INLINE {
    using W = decltype(base);
    const hn::DFromV<W> dw;
    W log = wide::log(base);
    log = hn::IfThenElse(hn::Eq(base, hn::Zero(dw)), hn::Neg(hn::Inf(dw)), log);
    log = hn::IfThenElse(hn::Lt(base, hn::Inf(dw)), log, base);
    return wide::exp(hn::Mul(exponent, log));
  });
  // A negative base: the sign of an odd exponent, NaN for a fraction. -0 and -inf accept fractions.
  const V half = hn::Mul(y, splat<V>(0.5));
  const auto whole = hn::Eq(hn::Floor(y), y);
  const auto odd = hn::And(whole, hn::Ne(hn::Floor(half), half));
  r = hn::IfThenElse(odd, hn::CopySign(r, x), r);
  const auto fraction = hn::And(hn::And(hn::Lt(x, zero), hn::Lt(a, hn::Inf(d))), hn::Not(whole));
  r = hn::IfThenElse(fraction, hn::NaN(d), r);
  // 1 to any power, any base to 0, and -1 to an infinity are 1, also with a NaN operand.
  const auto unit = hn::And(hn::Eq(a, one), hn::Eq(hn::Abs(y), hn::Inf(d)));
  const auto is_one = hn::Or(hn::Or(hn::Eq(x, one), hn::Eq(y, zero)), unit);
  return hn::IfThenElse(is_one, one, r);
}

template <class V>
HWY_INLINE V hypot(V x, V y) {
  const hn::DFromV<V> d;
  const V inf = hn::Inf(d);
  const V r = in_f64(x, y, [](auto a, auto b) BAREGRAD_LAMBDA_INLINE {
    return hn::Sqrt(hn::MulAdd(a, a, hn::Mul(b, b)));
  });
  // An infinity takes precedence over a NaN.
  const auto infinite = hn::Or(hn::Eq(hn::Abs(x), inf), hn::Eq(hn::Abs(y), inf));
  return hn::IfThenElse(infinite, inf, r);
}

/// log(e^x + e^y).
template <class V>
HWY_INLINE V logaddexp(V x, V y) {
  const hn::DFromV<V> d;
  const V r = in_f64(x, y, [](auto a, auto b) BAREGRAD_LAMBDA_INLINE {
    const auto greater = hn::Max(a, b);
    return hn::Add(greater, wide::log1p(wide::exp(hn::Neg(hn::Abs(hn::Sub(a, b))))));
  });
  // The difference of equal infinities is NaN; a NaN must not be lost in log1p.
  const auto same = hn::And(hn::Eq(x, y), hn::Eq(hn::Abs(x), hn::Inf(d)));
  const auto nan = hn::Or(hn::IsNaN(x), hn::IsNaN(y));
  return hn::IfThenElse(same, x, hn::IfThenElse(nan, hn::Add(x, y), r));
}

}  // namespace baregrad::kernels::HWY_NAMESPACE::math

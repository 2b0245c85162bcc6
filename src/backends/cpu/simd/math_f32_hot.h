// f32 functions that stay in f32: exp, log and the activations built on them.
#pragma once

#include "backends/cpu/simd/math_f32_wide.h"

namespace baregrad::kernels::HWY_NAMESPACE::math {

/// e^x = 2^n (1 + s), |s| < 0.42.
template <class V>
struct ExpParts {
  V s;
  hn::VFromD<hn::RebindToSigned<hn::DFromV<V>>> exponent;  // n << 23
};

/// The parts of e^(x - lo), |x| < 2^20; lo is the part of the argument that x cannot hold.
template <class V>
HWY_INLINE ExpParts<V> exp_parts(V x, V lo) {
  const hn::RebindToSigned<hn::DFromV<V>> di;
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
  const V magic = splat<V>(0x1.8p23);
  const V t = hn::MulAdd(x, splat<V>(0x1.715476p0), magic);
  const V n = hn::Sub(t, magic);
  const V hi = hn::NegMulAdd(n, splat<V>(0x1.62e4p-1), x);  // exact
  lo = hn::MulAdd(n, splat<V>(0x1.7f7d1cp-20), lo);
  const V r = hn::Sub(hi, lo);
  // |r| <= ln2 / 2; relative error of 1 + r + r^2 q is 2^-28. By Sollya, like all that follow:
  // fpminimax(exp(x), [|2,...,6|], [|SG...|], [-0.3475; 0.3475], floating, relative, 1 + x).
  const V q = poly(r, 0x1.fffffap-2, 0x1.55549p-3, 0x1.555a22p-5, 0x1.123b04p-7, 0x1.695414p-10);
  // hi and lo stay separate to the end: rounding r would cost a fifth of an ULP.
  const V s = hn::Add(hi, hn::MulSub(hn::Mul(r, r), q, lo));
  return {s, hn::ShiftLeft<23>(hn::BitCast(di, t))};
}
template <class V>
HWY_INLINE ExpParts<V> exp_parts(V x) {
  return exp_parts(x, hn::Zero(hn::DFromV<V>()));
}

/// 2^n for |n| < 127.
template <class V>
HWY_INLINE V power_of_two(hn::VFromD<hn::RebindToSigned<hn::DFromV<V>>> exponent) {
  const hn::DFromV<V> d;
  const hn::RebindToSigned<decltype(d)> di;
  return hn::BitCast(d, hn::Add(exponent, hn::BitCast(di, splat<V>(1.0))));
}

/// 1 + e^(x - lo), -87 <= x <= 16, rounded once: 2^n + 1 is exact wherever its last bits matter.
template <class V>
HWY_INLINE V one_plus_exp(V x, V lo) {
  const ExpParts<V> p = exp_parts(x, lo);
  const V power = power_of_two<V>(p.exponent);
  return hn::MulAdd(power, p.s, hn::Add(power, splat<V>(1.0)));
}
template <class V>
HWY_INLINE V one_plus_exp(V x) {
  return one_plus_exp(x, hn::Zero(hn::DFromV<V>()));
}

/// y * 2^n for normal results: n is added to the exponent of y.
template <class V>
HWY_INLINE V scale_normal(V y, hn::VFromD<hn::RebindToSigned<hn::DFromV<V>>> exponent) {
  const hn::DFromV<V> d;
  const hn::RebindToSigned<decltype(d)> di;
  return hn::BitCast(d, hn::Add(hn::BitCast(di, y), exponent));
}

/// y * 2^n, |n| <= 252, for all results: the first of two steps is exact, the second rounds once.
template <class V>
HWY_INLINE V scale(V y, hn::VFromD<hn::RebindToSigned<hn::DFromV<V>>> exponent) {
  const hn::DFromV<V> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto one = hn::BitCast(di, splat<V>(1.0));
  const auto half = hn::ShiftLeft<23>(hn::ShiftRight<24>(exponent));
  const V a = hn::BitCast(d, hn::Add(half, one));
  const V b = hn::BitCast(d, hn::Add(hn::Sub(exponent, half), one));
  return hn::Mul(hn::Mul(y, a), b);
}

template <class V>
HWY_INLINE V exp(V x) {
  const hn::DFromV<V> d;
  const V one = splat<V>(1.0);
  if (HWY_LIKELY(hn::AllTrue(d, hn::Le(hn::Abs(x), splat<V>(87.0))))) {
    const ExpParts<V> p = exp_parts(x);
    return scale_normal(hn::Add(one, p.s), p.exponent);
  }
  const ExpParts<V> p = exp_parts(at_least(at_most(x, 89.0), -105.0));
  return scale(hn::Add(one, p.s), p.exponent);
}

template <class V>
HWY_INLINE V exp2(V x) {
  const hn::DFromV<V> d;
  const hn::RebindToSigned<decltype(d)> di;
  x = at_least(at_most(x, 129.0), -151.0);
  const V magic = splat<V>(0x1.8p23);
  const V t = hn::Add(x, magic);
  const V r = hn::Sub(x, hn::Sub(t, magic));
  const V q = poly(r, 0x1.62e43p-1, 0x1.ebfbd8p-3, 0x1.c6af72p-5, 0x1.3b309p-7, 0x1.5f0e12p-10,
                   0x1.3fb5f2p-13);
  return scale(hn::MulAdd(q, r, splat<V>(1.0)), hn::ShiftLeft<23>(hn::BitCast(di, t)));
}

template <class V>
HWY_INLINE V expm1(V x) {
  const hn::DFromV<V> d;
  const hn::RebindToSigned<decltype(d)> di;
  const ExpParts<V> p = exp_parts(at_least(at_most(x, 89.0), -18.0));
  // 2^n s + (2^n - 1), computed at half its size, so that n = 128 does not overflow in between.
  const V half = splat<V>(0.5);
  const V h = hn::BitCast(d, hn::Add(p.exponent, hn::BitCast(di, half)));
  const V y = hn::MulAdd(h, p.s, hn::Sub(h, half));
  const auto small = hn::Eq(h, half);
  return hn::CopySign(hn::IfThenElse(small, p.s, hn::Add(y, y)), x);
}

/// x = 2^e (1 + f), f in [sqrt(1/2) - 1, sqrt(2) - 1), for normal x > 0.
template <class V>
struct LogParts {
  V e;
  V f;
};
template <class V>
HWY_INLINE LogParts<V> log_parts(V x) {
  const hn::DFromV<V> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto bits = hn::BitCast(di, x);
  const auto e = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));
  const V m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(e)));
  return {hn::ConvertTo(d, e), hn::Sub(m, splat<V>(1.0))};
}

/// log(1 + f) - f for the f of LogParts; the relative error of log(1 + f) is 2^-30.
template <class V>
HWY_INLINE V log1p_tail(V f) {
  const V p = poly(f, 0x1.555548p-2, -0x1.000008p-2, 0x1.99a47ap-3, -0x1.555b92p-3, 0x1.233ab8p-3,
                   -0x1.fc3c88p-4, 0x1.e6dfep-4, -0x1.dda796p-4, 0x1.13ca2cp-4);
  const V f2 = hn::Mul(f, f);
  return hn::MulAdd(hn::Mul(f2, f), p, hn::Mul(f2, splat<V>(-0.5)));
}

/// e * ln2 + f + tail. The head of e * ln2 is exact; the rounding error of its sum with f is added
/// back.
template <class V>
HWY_INLINE V log_sum(V e, V f, V tail) {
  const V head = hn::Mul(e, splat<V>(0x1.62e4p-1));
  const V sum = hn::Add(head, f);
  const V lost = hn::Sub(f, hn::Sub(sum, head));
  return hn::Add(sum, hn::Add(hn::MulAdd(e, splat<V>(0x1.7f7d1cp-20), tail), lost));
}

/// Replaces the logarithms of zero, negative numbers, infinity and NaN by the right values.
template <class V>
HWY_INLINE V log_special(V x, V y) {
  const hn::DFromV<V> d;
  const V zero = hn::Zero(d);
  y = hn::IfThenElse(hn::Lt(x, hn::Inf(d)), y, x);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(hn::Inf(d)), y);
  return hn::IfThenElse(hn::Lt(x, zero), hn::NaN(d), y);
}

/// sum(e, f, tail) directly where all lanes are normal; else denormals are scaled up first and
/// special values are replaced afterwards.
template <class V, class F>
HWY_INLINE V log_like(V x, F sum) {
  const hn::DFromV<V> d;
  const auto usual = hn::And(hn::Ge(x, splat<V>(0x1p-126)), hn::Lt(x, hn::Inf(d)));
  if (HWY_LIKELY(hn::AllTrue(d, usual))) {
    const LogParts<V> p = log_parts(x);
    return sum(p.e, p.f, log1p_tail(p.f));
  }
  const auto denormal = hn::Lt(x, splat<V>(0x1p-126));
  const LogParts<V> p = log_parts(hn::IfThenElse(denormal, hn::Mul(x, splat<V>(0x1p24)), x));
  const V e = hn::IfThenElse(denormal, hn::Sub(p.e, splat<V>(24.0)), p.e);
  return log_special(x, sum(e, p.f, log1p_tail(p.f)));
}

template <class V>
HWY_INLINE V log(V x) {
  return log_like(x, [](V e, V f, V tail) BAREGRAD_LAMBDA_INLINE { return log_sum(e, f, tail); });
}

template <class V>
HWY_INLINE V log2(V x) {
  return log_like(x, [](V e, V f, V tail) BAREGRAD_LAMBDA_INLINE {
    // log2(e) (f + tail), with the integer part of log2(e) split off: f enters unrounded.
    const V rest = hn::MulAdd(f, splat<V>(0x1.c551d94ap-2), hn::Mul(tail, splat<V>(0x1.715476p0)));
    return hn::Add(e, hn::Add(f, rest));
  });
}

template <class V>
HWY_INLINE V log10(V x) {
  const hn::DFromV<V> d;
  const V y = in_f64(x, [](auto w) BAREGRAD_LAMBDA_INLINE {
    return hn::Mul(wide::log(w), splat<decltype(w)>(0x1.bcb7b1526e50ep-2));
  });
  const auto usual = hn::And(hn::Gt(x, hn::Zero(d)), hn::Lt(x, hn::Inf(d)));
  return HWY_LIKELY(hn::AllTrue(d, usual)) ? y : log_special(x, y);
}

template <class V>
HWY_INLINE V log1p(V x) {
  const hn::DFromV<V> d;
  const hn::RebindToSigned<decltype(d)> di;
  const V one = splat<V>(1.0);
  // Beyond 2^60, adding 1 changes nothing, and 2^-e would leave the normal range.
  const auto usual = hn::And(hn::Gt(x, splat<V>(-1.0)), hn::Lt(x, splat<V>(0x1p60)));
  const auto e =
      hn::ShiftRight<23>(hn::Sub(hn::BitCast(di, hn::Add(x, one)), hn::Set(di, 0x3f3504f3)));
  const V inverse = hn::BitCast(d, hn::Sub(hn::Set(di, 0x3f800000), hn::ShiftLeft<23>(e)));
  // 2^-e (1 + x) - 1, without rounding 1 + x.
  const V f = hn::MulAdd(x, inverse, hn::Sub(inverse, one));
  const V y = hn::CopySign(log_sum(hn::ConvertTo(d, e), f, log1p_tail(f)), x);
  if (HWY_LIKELY(hn::AllTrue(d, usual))) return y;
  const V below = hn::IfThenElse(hn::Eq(x, splat<V>(-1.0)), hn::Neg(hn::Inf(d)), hn::NaN(d));
  const V above = hn::IfThenElse(hn::Lt(x, splat<V>(-0.5)), below, log(x));
  return hn::IfThenElse(usual, y, above);
}

template <class V>
HWY_INLINE V tanh(V x) {
  const V one = splat<V>(1.0);
  const V a = hn::Abs(x);
  // |x| < 0.55: x + x^3 P(x^2), relative error 2^-29.
  const V z = hn::Mul(x, x);
  const V p =
      horner(z, -0x1.555548p-2, 0x1.110c7p-3, -0x1.b90a76p-5, 0x1.584238p-6, -0x1.958c74p-8);
  const V small = hn::MulAdd(hn::Mul(p, z), a, a);
  // Otherwise 1 - 2 / (e^2x + 1), which is 1 from 9.02 on.
  const V b = at_most(a, 10.0);
  const V large = hn::Sub(one, hn::Div(splat<V>(2.0), one_plus_exp(hn::Add(b, b))));
  return hn::CopySign(hn::IfThenElse(hn::Ge(a, splat<V>(0.55)), large, small), x);
}

/// x / (1 + e^(y - lo)) where y leaves [-16, 16] in some lane; NaN for x = -inf, like -inf * 0.
template <class V>
HWY_INLINE V over_one_plus_exp_far(V x, V y, V lo) {
  const hn::DFromV<V> d;
  const hn::RebindToSigned<decltype(d)> di;
  const V one = splat<V>(1.0);
  const auto huge = hn::Gt(y, splat<V>(16.0));
  // Below, where 1 + e^y is near 1, nothing changes from -87 on.
  const V z = at_least(at_most(y, 170.0), -87.0);
  lo = hn::IfThenZeroElse(hn::Ne(y, z), lo);
  const V small = hn::Div(x, one_plus_exp(hn::IfThenZeroElse(huge, z), lo));
  // Above: 2^n (1 + s + 2^-n). 2^-n is applied last, because the quotient may become a denormal.
  const ExpParts<V> p = exp_parts(z, lo);
  const auto floor = hn::Set(di, -126 * (1 << 23));
  const V inverse = power_of_two<V>(hn::Max(hn::Neg(p.exponent), floor));
  const V quotient = hn::Div(at_least(x, -170.0), hn::Add(one, hn::Add(p.s, inverse)));
  const V far = hn::IfThenElse(huge, scale(quotient, hn::Neg(p.exponent)), small);
  return hn::IfThenElse(hn::Eq(x, hn::Neg(hn::Inf(d))), hn::NaN(d), far);
}

template <class V>
HWY_INLINE V sigmoid(V x) {
  const hn::DFromV<V> d;
  const V one = splat<V>(1.0);
  const V y = hn::Neg(x);
  if (HWY_LIKELY(hn::AllTrue(d, hn::Le(hn::Abs(x), splat<V>(16.0))))) {
    return hn::Div(one, one_plus_exp(y));
  }
  return over_one_plus_exp_far(one, y, hn::Zero(d));
}

template <class V>
HWY_INLINE V silu(V x) {
  const hn::DFromV<V> d;
  const V y = hn::Neg(x);
  if (HWY_LIKELY(hn::AllTrue(d, hn::Le(hn::Abs(x), splat<V>(16.0))))) {
    return hn::Div(x, one_plus_exp(y));
  }
  return over_one_plus_exp_far(x, y, hn::Zero(d));
}

template <class V>
HWY_INLINE V erf(V x) {
  const V a = hn::Abs(x);
  // |x| < 0.93: x + x P(x^2), relative error 2^-30.
  const V z = hn::Mul(x, x);
  const V p = horner(z, 0x1.06eba8p-3, -0x1.812742p-2, 0x1.ce2decp-4, -0x1.b80cdap-6, 0x1.54bb3ap-8,
                     -0x1.a9e392p-11, 0x1.5bd58cp-14);
  const V small = hn::MulAdd(a, p, a);
  // Otherwise 1 - exp(log(erfc(|x|))), which is 1 from 3.92 on; the error of the logarithm, times
  // erfc, is 2^-29.
  const V b = at_most(a, 4.0);
  const V g = poly(b, -0x1.b225eap-13, -0x1.20ac3p0, -0x1.4647b4p-1, -0x1.a9653ap-4, 0x1.6b8e66p-6,
                   -0x1.8da0dep-9, 0x1.98d2b4p-13);
  const ExpParts<V> e = exp_parts(g);
  // 1 - 2^n (1 + s), rounded once.
  const V power = power_of_two<V>(e.exponent);
  const V large = hn::NegMulAdd(power, e.s, hn::Sub(splat<V>(1.0), power));
  return hn::CopySign(hn::IfThenElse(hn::Ge(a, splat<V>(0.93)), large, small), x);
}

}  // namespace baregrad::kernels::HWY_NAMESPACE::math

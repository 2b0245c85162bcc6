// gelu(x) = x Phi(x) in f32, with the relative accuracy of the negative tail, and its tanh
// approximation.
#pragma once

#include "backends/cpu/simd/math_f32_hot.h"
#include "backends/cpu/simd/math_f32_wide.h"

namespace baregrad::kernels::HWY_NAMESPACE::math {

/// x Phi(x) for every x. With a = |x| and v = 4 / (4 + a), Phi(-a) = exp(-a^2 / 2) v W(v). The
/// relative error of W is 2^-29 as long as Phi(-a) is not zero as a float.
template <class V>
HWY_INLINE V gelu_wide(V x) {
  return in_f64(x, [](auto w) BAREGRAD_LAMBDA_INLINE {
    using W = decltype(w);
    const W a = hn::Abs(w);
    const W v = hn::Div(splat<W>(4.0), hn::Add(a, splat<W>(4.0)));
    const W p = poly(v, 0x1.987b74p-4, 0x1.995d3p-4, 0x1.75dfdap-4, 0x1.84b784p-4, 0x1.0561c4p-7,
                     0x1.8a1ecep-3, -0x1.fcad74p-3, 0x1.57f68ap-2, -0x1.fe9c3ep-3, 0x1.65aec4p-4,
                     -0x1.827af2p-7);
    const W b = at_most(a, 40.0);
    const W e = wide::exp(hn::Mul(hn::Mul(b, b), splat<W>(-0.5)));
    const W tail = hn::Mul(hn::Mul(e, v), p);
    const auto left = hn::Lt(w, hn::Zero(hn::DFromV<W>()));
    return hn::Mul(w, hn::IfThenElse(left, tail, hn::Sub(splat<W>(1.0), tail)));
  });
}

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL

// g(a) = a Phi(-a), in as many intervals as a register has lanes, so that a lookup is one
// permutation and no exponential is needed. Row 0 holds a point r near the end of each interval
// where g is least; the others hold the coefficients of g(r - t) by powers of t. g grows from
// there, so the terms hardly cancel. The points r are chosen so that g(r) is a float to 2^-30.
// Relative error 2^-27 up to a = 4.875; only positive x go beyond, and there g hardly contributes.
#if HWY_TARGET == HWY_AVX2
constexpr double kGeluLeft = -4.21875;
constexpr double kGeluIntervals = 8 / 5.625;  // per unit of a
alignas(32) constexpr float kGelu[][8] = {
    {0.0f, 0x1.6800ep0f, 0x1.0e0548p1f, 0x1.6807fp1f, 0x1.c206f8p1f, 0x1.0e03d8p2f, 0x1.3b00ccp2f,
     0x1.680394p2f},
    {0.0f, 0x1.cbc8ep-4f, 0x1.2d8b6ap-5f, 0x1.c4bcfcp-8f, 0x1.940676p-11f, 0x1.b242fp-15f,
     0x1.1b103ap-19f, 0x1.bf9f7cp-25f},
    {-0x1p-1f, 0x1.07f7fcp-3f, 0x1.2d06p-4f, 0x1.37b8c8p-6f, 0x1.5fb1b6p-9f, 0x1.c7bb36p-13f,
     0x1.5b4eb8p-17f, 0x1.3a333p-22f},
    {-0x1.988452p-2f, -0x1.b4518cp-10f, 0x1.b0a47cp-5f, 0x1.71db88p-6f, 0x1.184654p-8f,
     0x1.c2c35ap-12f, 0x1.984e54p-16f, 0x1.ab0778p-21f},
    {0x1.316ac4p-21f, -0x1.20214ep-4f, 0x1.be9cecp-8f, 0x1.cae78ap-7f, 0x1.091222p-8f,
     0x1.14d5e2p-11f, 0x1.30c87cp-15f, 0x1.7571e6p-20f},
    {0x1.105f34p-4f, -0x1.2d01d4p-5f, -0x1.ae5992p-7f, 0x1.d38d7ap-9f, 0x1.3cabdap-9f,
     0x1.d29fcep-12f, 0x1.42ab2cp-15f, 0x1.d55ba8p-20f},
    {0x1.53448ap-15f, 0x1.1e417cp-11f, -0x1.1e37b2p-7f, -0x1.2d39ccp-10f, 0x1.bc6426p-11f,
     0x1.1656c4p-12f, 0x1.fbb4d4p-16f, 0x1.cc64e4p-20f},
    {-0x1.421e22p-7f, 0x1.4a174ap-8f, -0x1.c6993ap-12f, -0x1.51ffep-10f, 0x1.9329a4p-15f,
     0x1.d82f7p-14f, 0x1.3c6214p-16f, 0x1.3e54e6p-20f},
    {0x1.45ed4p-12f, 0x1.38b7b6p-9f, -0x1.77b808p-12f, -0x1.8a17ccp-12f, -0x1.195fe2p-14f,
     0x1.6e942ep-16f, 0x1.f881a6p-18f, 0x1.113cbep-20f},
    {0x1.a3813p-10f, -0x1.8f127cp-10f, 0x1.641f6p-10f, -0x1.1281acp-17f, -0x1.771f4ap-14f,
     0x1.ea96dp-18f, 0x1.0cdb5cp-18f, 0x1.7a3a7p-24f},
    {0x1.4d1474p-12f, 0x1.cc26a6p-13f, -0x1.a08fecp-12f, 0x1.2d29a2p-14f, 0x1.f11b0ep-18f,
     -0x1.212e6cp-17f, 0x1.d1e766p-26f, 0x1.895a84p-22f},
};
#else
constexpr double kGeluLeft = -4.875;
constexpr double kGeluIntervals = 16 / 5.625;
alignas(64) constexpr float kGelu[][16] = {
    {0.0f, 0x1.67ff9p-2f, 0x1.0e08ep0f, 0x1.6800ep0f, 0x1.c204ep0f, 0x1.0e0548p1f, 0x1.3b03fp1f,
     0x1.6807fp1f, 0x1.950398p1f, 0x1.c206f8p1f, 0x1.ef0548p1f, 0x1.0e03d8p2f, 0x1.24801p2f,
     0x1.3b00ccp2f, 0x1.51819p2f, 0x1.680394p2f},
    {0.0f, 0x1.050f22p-3f, 0x1.3ade04p-3f, 0x1.cbc8ep-4f, 0x1.1b9284p-4f, 0x1.2d8b6ap-5f,
     0x1.17494ap-6f, 0x1.c4bcfcp-8f, 0x1.4281ep-9f, 0x1.940676p-11f, 0x1.be2cb4p-13f,
     0x1.b242fp-15f, 0x1.7568bep-17f, 0x1.1b103ap-19f, 0x1.7ae0e4p-22f, 0x1.bf9f7cp-25f},
    {-0x1p-1f, -0x1.d88c3ep-3f, 0x1.872f56p-4f, 0x1.07f7fcp-3f, 0x1.c35fd6p-4f, 0x1.2d06p-4f,
     0x1.4c7c7ap-5f, 0x1.37b8c8p-6f, 0x1.f71ef6p-8f, 0x1.5fb1b4p-9f, 0x1.ac68ccp-11f,
     0x1.c7bb36p-13f, 0x1.a90bbap-15f, 0x1.5b4ec2p-17f, 0x1.f266c2p-20f, 0x1.3a334cp-22f},
    {-0x1.988454p-2f, -0x1.684de4p-2f, -0x1.9fa5a2p-4f, -0x1.b44c72p-10f, 0x1.7bf67ep-5f,
     0x1.b0a494p-5f, 0x1.40ccfep-5f, 0x1.71db82p-6f, 0x1.5ebf92p-7f, 0x1.18469p-8f, 0x1.7ef8c6p-10f,
     0x1.c2c35ep-12f, 0x1.cc400ep-14f, 0x1.984cbep-16f, 0x1.3be4a4p-18f, 0x1.ab029p-21f},
    {-0x1.a10952p-21f, -0x1.5cf8ep-4f, -0x1.db8d08p-4f, -0x1.2023ecp-4f, -0x1.739c58p-6f,
     0x1.be86e8p-8f, 0x1.0ade08p-6f, 0x1.cae932p-7f, 0x1.15964ap-7f, 0x1.090d02p-8f,
     0x1.a17754p-10f, 0x1.14d58p-11f, 0x1.39796cp-13f, 0x1.30ddb2p-15f, 0x1.00456ep-17f,
     0x1.75b8cep-20f},
    {0x1.1047cp-4f, 0x1.92294ep-5f, -0x1.8dd036p-6f, -0x1.2cbcf2p-5f, -0x1.d5a8bap-6f,
     -0x1.adfef8p-7f, -0x1.6baa74p-10f, 0x1.d3364ep-9f, 0x1.f2c1b2p-9f, 0x1.3d1ac6p-9f,
     0x1.2f37b4p-10f, 0x1.d2ac2cp-12f, 0x1.2a640ap-13f, 0x1.41a2bp-15f, 0x1.277e5ap-17f,
     0x1.d1b98ep-20f},
    {-0x1.264b8ep-13f, 0x1.224e94p-6f, 0x1.c7a6bcp-7f, 0x1.4f88e4p-12f, -0x1.05827ap-7f,
     -0x1.1e8fa2p-7f, -0x1.31c654p-8f, -0x1.28e89p-10f, 0x1.23e496p-11f, 0x1.b210b6p-11f,
     0x1.22d346p-11f, 0x1.1603cep-12f, 0x1.a3966ap-14f, 0x1.04a9fcp-15f, 0x1.105c18p-17f,
     0x1.e4bca8p-20f},
    {-0x1.5b4a56p-7f, -0x1.ed6e04p-8f, 0x1.cde72ep-8f, 0x1.8286d4p-8f, 0x1.dac998p-10f,
     -0x1.5a2c9ep-11f, -0x1.1fc2fp-9f, -0x1.5fab2cp-10f, -0x1.70f9dep-12f, 0x1.de523ep-14f,
     0x1.7d2282p-13f, 0x1.db36c6p-14f, 0x1.98d3c2p-15f, 0x1.0b7208p-16f, 0x1.166a88p-18f,
     0x1.d4878ap-21f},
    {-0x1.66662p-10f, -0x1.108dd4p-8f, -0x1.04b68cp-9f, 0x1.54d5f8p-11f, 0x1.cf3d16p-10f,
     0x1.49bd62p-11f, 0x1.329f9p-12f, -0x1.41c5c4p-12f, -0x1.849edcp-12f, -0x1.82ea92p-13f,
     -0x1.10d9f2p-15f, 0x1.807bc2p-16f, 0x1.939c9p-16f, 0x1.b13d54p-17f, 0x1.4d9fb6p-18f,
     0x1.9313dcp-20f},
};
#endif
constexpr int kGeluDegree = static_cast<int>(sizeof(kGelu) / sizeof(kGelu[0])) - 2;
static_assert(kGeluDegree % 2 == 1);

template <class V>
HWY_INLINE V gelu(V x) {
  const hn::DFromV<V> d;
  const hn::RebindToSigned<decltype(d)> di;
  // From 5.62 on, x - g(x) rounds to x.
  const V a = hn::Min(hn::Abs(x), splat<V>(5.62));
  // floor(a * kGeluIntervals) is in the low bits, as in exp_parts.
  const V u = hn::Add(hn::MulAdd(a, splat<V>(kGeluIntervals), splat<V>(-0.5)), splat<V>(0x1.8p23));
  constexpr int kLast = static_cast<int>(sizeof(kGelu[0]) / sizeof(float)) - 1;
  const auto interval = hn::IndicesFromVec(d, hn::And(hn::BitCast(di, u), hn::Set(di, kLast)));
  const auto row = [&](int i) BAREGRAD_LAMBDA_INLINE {
    return hn::TableLookupLanes(hn::Load(d, kGelu[i]), interval);
  };
  const V t = hn::Sub(row(0), a);
  const V t2 = hn::Mul(t, t);
  // Pairs of terms side by side, then Horner's rule in t^2.
  const auto pair = [&](int i)
                        BAREGRAD_LAMBDA_INLINE { return hn::MulAdd(row(i + 2), t, row(i + 1)); };
  V g = pair(kGeluDegree - 1);
  for (int i = kGeluDegree - 3; i >= 0; i -= 2) g = hn::MulAdd(g, t2, pair(i));
  // x Phi(x) = x - x Phi(-x): max(x, 0) - g(|x|) for both signs, -0 included.
  const V y = hn::Sub(at_least(x, -0.0), g);
  // The formula for a lane depends on its own value alone: neighbours never change a result.
  const auto near = hn::Ge(x, splat<V>(kGeluLeft));
  if (HWY_LIKELY(hn::AllTrue(d, near))) return y;
  return hn::IfThenElse(near, y, gelu_wide(x));
}

#else

template <class V>
HWY_INLINE V gelu(V x) {
  return gelu_wide(x);
}

#endif

/// x / 2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = x / (1 + e^-t), t = sqrt(8/pi) (...).
template <class V>
HWY_INLINE V gelu_tanh(V x) {
  const hn::DFromV<V> d;
  // -t is needed to 2^-26 absolutely, and is about 100 where the result still matters: two floats.
  const auto minus_t = [](auto w) BAREGRAD_LAMBDA_INLINE {
    using W = decltype(w);
    constexpr double k = -1.5957691216057308;
    return hn::Mul(w, hn::MulAdd(hn::Mul(w, w), splat<W>(k * 0.044715), splat<W>(k)));
  };
  const V hi = in_f64(x, minus_t);
  const V lo =
      in_f64(x, hi, [&](auto w, auto h) BAREGRAD_LAMBDA_INLINE { return hn::Sub(h, minus_t(w)); });
  if (HWY_LIKELY(hn::AllTrue(d, hn::Le(hn::Abs(hi), splat<V>(16.0))))) {
    return hn::Div(x, one_plus_exp(hi, lo));
  }
  return over_one_plus_exp_far(x, hi, lo);
}

}  // namespace baregrad::kernels::HWY_NAMESPACE::math

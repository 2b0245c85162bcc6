// What kernels of contiguous float32 rows share: vectors and what is left of a row, exponentials
// less a maximum. Included by ISA-flagged sources only; everything here is local to its translation
// unit.
#pragma once

#include <hwy/highway.h>

#include "kernels/cpu/math_f32.h"
#include "kernels/cpu/reduce_block.h"
#include "kernels/cpu/vec.h"

HWY_BEFORE_NAMESPACE();
namespace baregrad::kernels::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));

/// A whole vector at a time, or what is left of a row: the same code for both.
struct Whole {
  HWY_INLINE V load(const float* p) const { return hn::LoadU(D(), p); }
  HWY_INLINE void store(V v, float* p) const { hn::StoreU(v, D(), p); }
  HWY_INLINE V only(V v) const { return v; }
};
struct Part {
  std::size_t n;
  HWY_INLINE V load(const float* p) const { return Vec<float>::load_part(p, n).raw; }
  HWY_INLINE void store(V v, float* p) const { Vec<float>{v}.store_part(p, n); }
  /// Zero beyond the row.
  HWY_INLINE V only(V v) const { return hn::IfThenElseZero(hn::FirstN(D(), n), v); }
};

template <class F>
HWY_INLINE void for_vectors(std::int64_t n, const F& f) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i, Whole{});
  if (i < n) f(i, Part{static_cast<std::size_t>(n - i)});
}

/// What the rounding of diff = x - y lost; NaN where diff is infinite.
HWY_INLINE V lost_by(V diff, V x, V y) {
  const V back = hn::Sub(diff, x);
  return hn::Sub(hn::Sub(x, hn::Sub(diff, back)), hn::Add(y, back));
}

/// exp(x - max) for x <= max. The subtraction rounds and exp would magnify that, so what
/// it lost goes along.
HWY_INLINE V exp_below(V x, V max) {
  const D d;
  const V diff = hn::Sub(x, max);
  const V lost = lost_by(diff, x, max);
  if (HWY_LIKELY(hn::AllTrue(d, hn::Ge(diff, hn::Set(d, -87.0f))))) {
    const auto p = math::exp_parts(diff, hn::Neg(lost));
    return math::scale_normal(hn::Add(hn::Set(d, 1.0f), p.s), p.exponent);
  }
  // An infinite difference leaves a NaN behind; there is nothing to add to 0.
  const V rest = hn::IfThenElseZero(hn::Gt(diff, hn::Set(d, -105.0f)), lost);
  const auto p = math::exp_parts(math::at_least(diff, -105.0), hn::Neg(rest));
  return math::scale(hn::Add(hn::Set(d, 1.0f), p.s), p.exponent);
}

/// The same for a row with one maximum. Where no x of a vector is further from 0 than the maximum,
/// what the subtraction lost takes two steps instead of five, and is the same.
class ExpBelow {
 public:
  HWY_INLINE explicit ExpBelow(float max)
      : max_(hn::Set(D(), max)),
        limit_(hn::Set(D(), max > 43.5f ? -87.0f
                            : max > 0   ? -2 * max
                                        : __builtin_inff())) {}

  HWY_INLINE V operator()(V x) const {
    const D d;
    const V diff = hn::Sub(x, max_);
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Ge(diff, limit_)))) return exp_below(x, max_);
    const V lost = hn::Sub(x, hn::Add(diff, max_));
    const auto p = math::exp_parts(diff, hn::Neg(lost));
    return math::scale_normal(hn::Add(hn::Set(d, 1.0f), p.s), p.exponent);
  }

 private:
  V max_;
  V limit_;
};

/// n exponentials, with one maximum for all (kManyTops false) or one each.
template <bool kManyTops>
void exp_run(const float* HWY_RESTRICT x, const float* HWY_RESTRICT max, float* HWY_RESTRICT out,
             std::int64_t n) {
  const D d;
  const V one = hn::Set(d, max[0]);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V m = kManyTops ? hn::LoadU(d, max + i) : one;
    hn::StoreU(exp_below(hn::LoadU(d, x + i), m), d, out + i);
  }
  if (i == n) return;
  HWY_ALIGN float lanes[kLanes] = {};
  HWY_ALIGN float tops[kLanes] = {};
  for (std::int64_t k = 0; k < n - i; ++k) {
    lanes[k] = x[i + k];
    tops[k] = max[kManyTops ? i + k : 0];
  }
  hn::Store(exp_below(hn::Load(d, lanes), hn::Load(d, tops)), d, lanes);
  for (std::int64_t k = 0; k < n - i; ++k) out[i + k] = lanes[k];
}

/// Sums of float32 vectors in float64, in registers.
class WideSum {
 public:
  HWY_INLINE void add(V v) {
#if HWY_TARGET == HWY_SCALAR
    low_ = hn::Add(low_, hn::PromoteTo(W(), v));
#else
    const hn::Half<D> half;
    low_ = hn::Add(low_, hn::PromoteTo(W(), hn::LowerHalf(half, v)));
    high_ = hn::Add(high_, hn::PromoteTo(W(), hn::UpperHalf(half, v)));
#endif
  }
  HWY_INLINE double total() const {
    constexpr std::size_t kWide = hn::MaxLanes(W());
    HWY_ALIGN double lanes[kWide];
    hn::Store(hn::Add(low_, high_), W(), lanes);
    for (std::size_t half = kWide / 2; half > 0; half /= 2) {
      for (std::size_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
    }
    return lanes[0];
  }

 private:
  using W = hn::ScalableTag<double>;
  hn::Vec<W> low_ = hn::Zero(W());
  hn::Vec<W> high_ = hn::Zero(W());
};

/// The sum of a row's exponentials, which go to `out` where kStore.
template <bool kStore>
double exp_sum(const float* HWY_RESTRICT x, float max, float* HWY_RESTRICT out, std::int64_t n) {
  const D d;
  const ExpBelow exp_of(max);
  WideSum sum;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V e = exp_of(hn::LoadU(d, x + i));
    if constexpr (kStore) hn::StoreU(e, d, out + i);
    sum.add(e);
  }
  double total = sum.total();
  if (i == n) return total;
  HWY_ALIGN float rest[kLanes];
  exp_run<false>(x + i, &max, rest, n - i);
  for (std::int64_t k = 0; k < n - i; ++k) {
    if constexpr (kStore) out[i + k] = rest[k];
    total += static_cast<double>(rest[k]);
  }
  return total;
}

bool is_finite(float x) { return x - x == 0; }

}  // namespace
}  // namespace baregrad::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

// What kernels of contiguous float32 rows share: whole vectors and the rest of a row, exponentials
// of differences to a maximum. Included by ISA-flagged sources only; everything here is local to
// its translation unit.
#pragma once

#include <hwy/highway.h>

#include "backends/cpu/simd/math_f32.h"
#include "backends/cpu/simd/reduce_block.h"
#include "backends/cpu/simd/vec.h"

HWY_BEFORE_NAMESPACE();
namespace baregrad::kernels::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));

/// A whole vector at a time, or the rest of a row: the same code for both.
struct WholeVector {
  HWY_INLINE V load(const float* p) const { return hn::LoadU(D(), p); }
  HWY_INLINE void store(V v, float* p) const { hn::StoreU(v, D(), p); }
  HWY_INLINE V only(V v) const { return v; }
};
struct PartOfVector {
  std::size_t n;
  HWY_INLINE V load(const float* p) const { return Vec<float>::load_part(p, n).raw; }
  HWY_INLINE void store(V v, float* p) const { Vec<float>{v}.store_part(p, n); }
  /// Zero beyond the row.
  HWY_INLINE V only(V v) const { return hn::IfThenElseZero(hn::FirstN(D(), n), v); }
};

template <class F>
HWY_INLINE void for_vectors(std::int64_t n, const F& f) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i, WholeVector{});
  if (i < n) f(i, PartOfVector{static_cast<std::size_t>(n - i)});
}

/// The rounding error of diff = x - y; NaN where diff is infinite.
HWY_INLINE V rounding_error_of(V diff, V x, V y) {
  const V back = hn::Sub(diff, x);
  return hn::Sub(hn::Sub(x, hn::Sub(diff, back)), hn::Add(y, back));
}

/// exp(x - max) for x <= max. The subtraction rounds, and exp would magnify the error, so the error
/// is passed on to exp.
HWY_INLINE V exp_below(V x, V max) {
  const D d;
  const V diff = hn::Sub(x, max);
  const V lost = rounding_error_of(diff, x, max);
  if (HWY_LIKELY(hn::AllTrue(d, hn::Ge(diff, hn::Set(d, -87.0f))))) {
    const auto p = math::exp_parts(diff, hn::Neg(lost));
    return math::scale_normal(hn::Add(hn::Set(d, 1.0f), p.s), p.exponent);
  }
  // The error of an infinite difference is NaN. Its exponential is 0 without a correction.
  const V rest = hn::IfThenElseZero(hn::Gt(diff, hn::Set(d, -105.0f)), lost);
  const auto p = math::exp_parts(math::at_least(diff, -105.0), hn::Neg(rest));
  return math::scale(hn::Add(hn::Set(d, 1.0f), p.s), p.exponent);
}

/// The same for a row with one maximum. Where no x of a vector is further from 0 than the maximum,
/// the rounding error takes two steps instead of five, with the same result.
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
    const auto p = math::exp_parts(diff, /*lo=*/hn::Sub(hn::Add(diff, max_), x));
    return math::scale_normal(hn::Add(hn::Set(d, 1.0f), p.s), p.exponent);
  }

 private:
  V max_;
  V limit_;
};

/// n exponentials, with one maximum for all (kManyTops false) or one for each.
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

/// Sums of numbers from 0 to 1, kept as sums and their rounding errors: as accurate as float64 at
/// half the work. A sum starts at 1, so no addend is greater and each error is exact. The errors
/// are summed plainly, and equal addends have equal errors: good for at most kMost vectors.
class UnitSum {
 public:
  static constexpr std::int64_t kMost = 512;

  HWY_INLINE void add(V v) {
    const V sum = hn::Add(sum_, v);
    lost_ = hn::Add(lost_, hn::Sub(v, hn::Sub(sum, sum_)));
    sum_ = sum;
  }
  HWY_INLINE double total() const { return total(sum_, lost_); }

 private:
  static HWY_NOINLINE double total(V sum, V lost) {
    HWY_ALIGN float sums[kLanes];
    HWY_ALIGN float losses[kLanes];
    hn::Store(sum, D(), sums);
    hn::Store(lost, D(), losses);
    double all = 0;
#pragma GCC unroll 1
    for (std::int64_t k = 0; k < kLanes; ++k) {
      all += (static_cast<double>(sums[k]) - 1) + static_cast<double>(losses[k]);
    }
    return all;
  }

  V sum_ = hn::Set(D(), 1.0f);
  V lost_ = hn::Zero(D());
};

bool is_finite(float x) { return x - x == 0; }

/// The maximum of the row, or NaN. A NaN beside finite numbers may be missed: it then shows in the
/// exponentials of the row and their sum.
float max_of_row(const float* x, std::int64_t n) {
  const D d;
  float max = x[0];
  if (n >= 4 * kLanes) {
    V a0 = hn::LoadU(d, x), a1 = a0, a2 = a0, a3 = a0;
    std::int64_t i = 0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
      a0 = hn::Max(a0, hn::LoadU(d, x + i));
      a1 = hn::Max(a1, hn::LoadU(d, x + i + kLanes));
      a2 = hn::Max(a2, hn::LoadU(d, x + i + 2 * kLanes));
      a3 = hn::Max(a3, hn::LoadU(d, x + i + 3 * kLanes));
    }
    for (; i + kLanes <= n; i += kLanes) a0 = hn::Max(a0, hn::LoadU(d, x + i));
    // Reading an element twice does not change the maximum.
    a1 = hn::Max(a1, hn::LoadU(d, x + n - kLanes));
    max = hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(a0, a1), hn::Max(a2, a3))));
    if (is_finite(max)) return max;
  }
  return extreme_of<float, true>(x, n);
}

/// The sum of the exponentials of a row, which are stored in `out` where kStore.
template <bool kStore>
double exp_sum(const float* HWY_RESTRICT x, float max, float* HWY_RESTRICT out, std::int64_t n) {
  const D d;
  const ExpBelow exp_of(max);
  double total = 0;
  std::int64_t i = 0;
  while (i + kLanes <= n) {
    UnitSum sum;
    const std::int64_t end = HWY_MIN(n, i + UnitSum::kMost * kLanes);
    for (; i + kLanes <= end; i += kLanes) {
      const V e = exp_of(hn::LoadU(d, x + i));
      if constexpr (kStore) hn::StoreU(e, d, out + i);
      sum.add(e);
    }
    total += sum.total();
  }
  if (i == n) return total;
  HWY_ALIGN float rest[kLanes];
  exp_run<false>(x + i, &max, rest, n - i);
#pragma GCC unroll 1
  for (std::int64_t k = 0; k < n - i; ++k) {
    if constexpr (kStore) out[i + k] = rest[k];
    total += static_cast<double>(rest[k]);
  }
  return total;
}

}  // namespace
}  // namespace baregrad::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

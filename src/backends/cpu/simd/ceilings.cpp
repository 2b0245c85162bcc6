// The ceiling loops of one instruction set.
#include "backends/cpu/ceilings.h"

#include <cstddef>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace baregrad::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Two units with a latency of 4 or 5 cycles need 10 chains; 12 chains and two constants still fit
// into 16 registers.
constexpr int kChains = 12;

template <class T>
double fma_loop(std::int64_t iterations, double* sink) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  // Tends to 2, so no chain ever reaches a slow denormal.
  const V half = hn::Set(d, T{0.5});
  const V one = hn::Set(d, T{1});
  V chain[kChains];
  for (int k = 0; k < kChains; ++k) chain[k] = hn::Set(d, static_cast<T>(k));
  for (std::int64_t i = 0; i < iterations; ++i) {
    for (int k = 0; k < kChains; ++k) chain[k] = hn::MulAdd(chain[k], half, one);
  }
  for (int k = 1; k < kChains; ++k) chain[0] = hn::Add(chain[0], chain[k]);
  *sink = static_cast<double>(hn::GetLane(chain[0]));
  return 2.0 * kChains * static_cast<double>(hn::Lanes(d)) * static_cast<double>(iterations);
}

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
constexpr int kSums = 8;
static_assert(Ceilings::kUnit % (kSums * kLanes) == 0);

float read(const float* HWY_RESTRICT x, std::int64_t n) {
  const D d;
  V sum[kSums];
  for (int k = 0; k < kSums; ++k) sum[k] = hn::Zero(d);
  for (std::int64_t i = 0; i < n; i += kSums * kLanes) {
    for (int k = 0; k < kSums; ++k) sum[k] = hn::Add(sum[k], hn::Load(d, x + i + k * kLanes));
  }
  for (int k = 1; k < kSums; ++k) sum[0] = hn::Add(sum[0], sum[k]);
  return hn::GetLane(hn::SumOfLanes(d, sum[0]));
}

template <bool kStreamed>
HWY_INLINE void put(V v, float* HWY_RESTRICT out) {
  if constexpr (kStreamed) {
    hn::Stream(v, D(), out);
  } else {
    hn::Store(v, D(), out);
  }
}

template <bool kStreamed>
void copy_loop(const float* HWY_RESTRICT x, float* HWY_RESTRICT out, std::int64_t n) {
  const D d;
  for (std::int64_t i = 0; i < n; i += 2 * kLanes) {
    const V a = hn::Load(d, x + i);
    const V b = hn::Load(d, x + i + kLanes);
    put<kStreamed>(a, out + i);
    put<kStreamed>(b, out + i + kLanes);
  }
  if constexpr (kStreamed) hwy::FlushStream();
}

template <bool kStreamed>
void add_loop(const float* HWY_RESTRICT x, const float* HWY_RESTRICT y, float* HWY_RESTRICT out,
              std::int64_t n) {
  const D d;
  for (std::int64_t i = 0; i < n; i += 2 * kLanes) {
    const V a = hn::Add(hn::Load(d, x + i), hn::Load(d, y + i));
    const V b = hn::Add(hn::Load(d, x + i + kLanes), hn::Load(d, y + i + kLanes));
    put<kStreamed>(a, out + i);
    put<kStreamed>(b, out + i + kLanes);
  }
  if constexpr (kStreamed) hwy::FlushStream();
}

void copy(const float* x, float* out, std::int64_t n, bool streamed) {
  if (streamed) {
    copy_loop<true>(x, out, n);
  } else {
    copy_loop<false>(x, out, n);
  }
}

void add(const float* x, const float* y, float* out, std::int64_t n, bool streamed) {
  if (streamed) {
    add_loop<true>(x, y, out, n);
  } else {
    add_loop<false>(x, y, out, n);
  }
}

void update(float* x, std::int64_t n) {
  const D d;
  // As in fma_loop: tends to 2.
  const V half = hn::Set(d, 0.5f);
  const V one = hn::Set(d, 1.0f);
  for (std::int64_t i = 0; i < n; i += 2 * kLanes) {
    const V a = hn::MulAdd(hn::Load(d, x + i), half, one);
    const V b = hn::MulAdd(hn::Load(d, x + i + kLanes), half, one);
    hn::Store(a, d, x + i);
    hn::Store(b, d, x + i + kLanes);
  }
}

}  // namespace

Ceilings ceilings() { return {fma_loop<float>, fma_loop<double>, read, copy, add, update}; }

}  // namespace baregrad::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

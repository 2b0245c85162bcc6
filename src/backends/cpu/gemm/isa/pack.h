// Packing: copies a strided block of an operand into contiguous rows of T, with conversion.
#pragma once

#include "backends/cpu/gemm/isa/ring.h"
#include "backends/cpu/gemm/kernels.h"
#include "backends/cpu/simd/convert.h"

namespace baregrad::kernels::HWY_NAMESPACE {

/// How an element of dtype S lies in memory, and what it is as a T.
template <class S, class T>
BG_INLINE T as_compute(Stored<S> x) {
  if constexpr (std::is_same_v<T, Logical>)
    return {static_cast<std::uint8_t>(x != 0)};
  else
    return static_cast<T>(convert<S, std::conditional_t<kIsHalf<S>, float, S>>(x));
}

/// n contiguous elements.
template <class S, class T>
BG_INLINE void convert_run(const Stored<S>* HWY_RESTRICT from, T* HWY_RESTRICT to, std::int64_t n) {
  std::int64_t i = 0;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if constexpr (std::is_same_v<S, Float16>) {
    const hn::ScalableTag<float> df;
    const hn::Rebind<hwy::float16_t, decltype(df)> dh;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(df));
    for (; n - i >= lanes; i += lanes) {
      const auto halves = hn::LoadU(hn::RebindToUnsigned<decltype(dh)>(), from + i);
      hn::StoreU(hn::PromoteTo(df, hn::BitCast(dh, halves)), df, to + i);
    }
  }
#endif
  for (; i < n; ++i) to[i] = as_compute<S, T>(from[i]);
}

/// 4 x 4 elements of 4 bytes, transposed: from[r] holds row r.
#if HWY_TARGET != HWY_SCALAR
template <class T>
BG_INLINE void transpose4(const T* from, std::int64_t stride, T* to, std::int64_t to_stride) {
  static_assert(sizeof(T) == 4);
  const hn::Full128<T> d;
  const hn::RepartitionToWide<decltype(d)> dw;
  const auto r0 = hn::LoadU(d, from);
  const auto r1 = hn::LoadU(d, from + stride);
  const auto r2 = hn::LoadU(d, from + 2 * stride);
  const auto r3 = hn::LoadU(d, from + 3 * stride);
  const auto a = hn::BitCast(dw, hn::InterleaveLower(d, r0, r1));
  const auto b = hn::BitCast(dw, hn::InterleaveLower(d, r2, r3));
  const auto e = hn::BitCast(dw, hn::InterleaveUpper(d, r0, r1));
  const auto f = hn::BitCast(dw, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dw, a, b)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dw, a, b)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dw, e, f)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dw, e, f)), d, to + 3 * to_stride);
}
#endif

/// to[o][i] = from[i][o], rows of `from` contiguous.
template <class T>
BG_INLINE void transpose(const T* from, std::int64_t stride, std::int64_t outer, std::int64_t inner,
                         T* to, std::int64_t to_stride) {
  std::int64_t o = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    for (; o + 4 <= outer; o += 4) {
      std::int64_t i = 0;
      for (; i + 4 <= inner; i += 4) {
        transpose4(from + i * stride + o, stride, to + o * to_stride + i, to_stride);
      }
      for (; i < inner; ++i) {
        for (int u = 0; u < 4; ++u) to[(o + u) * to_stride + i] = from[i * stride + o + u];
      }
    }
  }
#endif
  for (; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) to[o * to_stride + i] = from[i * stride + o];
  }
}

/// Rows as long as a panel of B is wide: whole vectors, without the checks of a loop over a row.
template <class T>
BG_INLINE void copy_panel(const GemmPack& p) {
  using V = Ring<T>;
  const auto* from = static_cast<const T*>(p.from);
  auto* to = static_cast<T*>(p.to);
  for (std::int64_t o = 0; o < p.outer; ++o, from += p.outer_stride, to += p.to_outer) {
    const V first = V::load(from);
    const V second = V::load(from + V::kLanes);
    first.store(to);
    second.store(to + V::kLanes);
  }
}

template <class S, class T>
void pack(const GemmPack& p) {
  const auto* from = static_cast<const Stored<S>*>(p.from);
  auto* to = static_cast<T*>(p.to);
  constexpr bool kPlain = std::is_same_v<Stored<S>, T>;
  if constexpr (kPlain) {
    if (p.inner_stride == 1 && p.inner == 2 * Ring<T>::kLanes) return copy_panel<T>(p);
  }
  if (p.inner_stride == 1) {
    for (std::int64_t o = 0; o < p.outer; ++o) {
      convert_run<S, T>(from + o * p.outer_stride, to + o * p.to_outer, p.inner);
    }
  } else if (p.outer_stride == 1) {
    if constexpr (kPlain) {
      transpose(from, p.inner_stride, p.outer, p.inner, to, p.to_outer);
    } else {
      // Runs are converted into L1, and transposed from there.
      constexpr std::int64_t kRun = 64;
      constexpr std::int64_t kRuns = 16;
      alignas(64) T runs[kRuns * kRun];
      for (std::int64_t o = 0; o < p.outer; o += kRun) {
        const std::int64_t run = p.outer - o < kRun ? p.outer - o : kRun;
        for (std::int64_t i = 0; i < p.inner; i += kRuns) {
          const std::int64_t count = p.inner - i < kRuns ? p.inner - i : kRuns;
          for (std::int64_t r = 0; r < count; ++r) {
            convert_run<S, T>(from + (i + r) * p.inner_stride + o, runs + r * kRun, run);
          }
          transpose(runs, kRun, run, count, to + o * p.to_outer + i, p.to_outer);
        }
      }
    }
  } else {
    for (std::int64_t o = 0; o < p.outer; ++o) {
      const Stored<S>* row = from + o * p.outer_stride;
      for (std::int64_t i = 0; i < p.inner; ++i) {
        to[o * p.to_outer + i] = as_compute<S, T>(row[i * p.inner_stride]);
      }
    }
  }
  if (p.padded == p.inner) return;
  for (std::int64_t o = 0; o < p.outer; ++o) {
    for (std::int64_t i = p.inner; i < p.padded; ++i) to[o * p.to_outer + i] = T{};
  }
}

}  // namespace baregrad::kernels::HWY_NAMESPACE

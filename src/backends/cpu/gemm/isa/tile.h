// The micro-kernel: a tile of C in registers, A is broadcast, B is read as vectors.
#pragma once

#include <type_traits>

#include <hwy/cache_control.h>

#include "backends/cpu/gemm/isa/ring.h"
#include "backends/cpu/gemm/kernels.h"

namespace baregrad::kernels::HWY_NAMESPACE {

// Sanitizers instrument every load: with all tiles, unrolled, a file would compile for many
// minutes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// Rows of the largest tile, each of two vectors of columns: with two vectors of B and one of A
/// these are all registers there are (14 * 2 + 3 of 32, 6 * 2 + 3 of 16). Integers and the narrow
/// instruction sets have fewer tiles, to keep the library small: integers multiply in several
/// instructions, which smaller tiles keep as busy, and few machines run the narrow instruction
/// sets.
template <class T>
constexpr int tile_rows() {
  constexpr bool kFloat = std::is_floating_point_v<T>;
  if (kSanitized || HWY_TARGET == HWY_SCALAR) return 2;
  if (HWY_TARGET == HWY_AVX3) return kFloat ? 14 : 4;
  if (HWY_TARGET == HWY_AVX2) return kFloat ? 6 : 4;
  return kFloat ? 4 : 2;
}
template <class T>
constexpr int kTileRows = tile_rows<T>();
constexpr int kTileVecs = 2;

/// Addresses of rows of A: few pointers and one stride, since x86 scales an index by 1 and 2 for
/// free.
template <bool kUnitK, int kRows, class T>
struct RowsOfA {
  static constexpr int kBases = (kRows + 2) / 3;
  const T* base[kBases];
  std::int64_t stride;

  BG_INLINE RowsOfA(const T* a, std::int64_t row_stride) : stride(row_stride) {
    for (int q = 0; q < kBases; ++q) base[q] = a + 3 * q * row_stride;
  }
  BG_INLINE const T* row(int i, int p) const { return base[i / 3] + (i % 3) * stride + p; }
  BG_INLINE void advance(int p) {
    for (int q = 0; q < kBases; ++q) base[q] += p;
  }
};
template <int kRows, class T>
struct RowsOfA<false, kRows, T> {
  const T* base;
  std::int64_t stride;

  BG_INLINE RowsOfA(const T* a, std::int64_t k_stride) : base(a), stride(k_stride) {}
  BG_INLINE const T* row(int i, int p) const { return base + p * stride + i; }
  BG_INLINE void advance(int p) { base += p * stride; }
};

/// One tile of kRows x kVecs vectors; the last vector has `last` columns where kPart.
template <class V, int kRows, int kVecs, bool kUnitK, bool kPart, class T>
BG_INLINE void compute_tile(const GemmTile& t, const T* a, const T* b, T* c, int last) {
  constexpr int kLanes = V::kLanes;
  // Integer products are not performance-critical: less unrolling, half the code.
  constexpr int kUnroll = kSanitized ? 1 : std::is_floating_point_v<T> ? 4 : 2;
  V acc[kRows][kVecs];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) acc[i][v] = V::zero();
  }
  RowsOfA<kUnitK, kRows, T> rows(a, t.a_stride);
  const std::int64_t b_row = t.b_row;
  const int loaded = t.b_packed ? kLanes : last;
  const auto step = [&](int p) BAREGRAD_LAMBDA_INLINE {
    V bv[kVecs];
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) {
      if (kPart && v == kVecs - 1)
        bv[v] = V::load_part(b + v * kLanes, loaded);
      else
        bv[v] = V::load(b + v * kLanes);
    }
    b += b_row;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V av = V::splat(rows.row(i, p));
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) acc[i][v].add_product(av, bv[v]);
    }
  };
  std::int64_t p = t.k;
  // C is prefetched a row at a time: all rows at once would delay A and B.
  const T* next = c;
  const T* const end = c + kRows * t.c_row;
  for (; p >= kUnroll; p -= kUnroll) {
    if (next != end) {
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) __builtin_prefetch(next + v * kLanes, 1);
      next += t.c_row;
    }
    if (kVecs > kTileVecs && t.ahead != 0) {
      const T* then = b + t.ahead;
#pragma GCC unroll 4
      for (int u = 0; u < kUnroll; ++u, then += b_row) {
#pragma GCC unroll 8
        for (int v = 0; v < kVecs; ++v) __builtin_prefetch(then + v * kLanes, 0, 2);
      }
    }
#pragma GCC unroll 4
    for (int u = 0; u < kUnroll; ++u) step(u);
    rows.advance(kUnroll);
  }
  for (; p > 0; --p) {
    step(0);
    rows.advance(1);
  }
  // The case of small products: no mask, and nothing of `t` is read again after each store.
  if constexpr (kVecs == 1 && std::is_floating_point_v<T>) {
    if (!t.add && (!kPart || last == kLanes)) {
      const std::int64_t c_row = t.c_row;
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) acc[i][0].store(c + i * c_row);
      return;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) {
      T* at = c + i * t.c_row + v * kLanes;
      V sum = acc[i][v];
      if (kPart && v == kVecs - 1) {
        if (t.add) {
          if constexpr (V::kMasked) {
            sum = V::add(V::load_part(at, last), sum);
          } else {
            alignas(64) T old[kLanes] = {};
            __builtin_memcpy(old, at, static_cast<std::size_t>(last) * sizeof(T));
            sum = V::add(V::load(old), sum);
          }
        }
        sum.store_part(at, last);
      } else {
        if (t.add) sum = V::add(V::load(at), sum);
        sum.store(at);
      }
    }
  }
}

/// Vectors that few rows take at once where B lies in rows: enough sums to hide the latency, and
/// long pieces of B.
constexpr int wide_vecs(int rows) {
  if (kSanitized) return kTileVecs;
  if (HWY_TARGET == HWY_AVX3) return rows <= 2 ? 8 : rows <= 4 ? 6 : rows <= 6 ? 4 : kTileVecs;
  if (HWY_TARGET == HWY_AVX2) return rows == 1 ? 8 : rows == 2 ? 5 : rows == 3 ? 3 : kTileVecs;
  return kTileVecs;
}

/// All columns of one product.
template <class T, int kRows, bool kUnitK>
BG_INLINE void compute_row_of_tiles(const GemmTile& t, const T* a, const T* b, T* c) {
  using V = Ring<T>;
  constexpr int kLanes = V::kLanes;
  constexpr int kWidth = kLanes * kTileVecs;
  constexpr int kWide = wide_vecs(kRows);
  std::int64_t left = t.cols;
  if constexpr (kWide > kTileVecs && std::is_floating_point_v<T>) {
    for (; left >= kWide * kLanes;
         left -= kWide * kLanes, b += kWide * kLanes, c += kWide * kLanes) {
      compute_tile<V, kRows, kWide, kUnitK, false>(t, a, b, c, kLanes);
    }
  }
  for (; left >= kWidth; left -= kWidth, b += kWidth, c += kWidth) {
    compute_tile<V, kRows, kTileVecs, kUnitK, false>(t, a, b, c, kLanes);
  }
  if (left == 0) return;
  static_assert(kTileVecs == 2);
  int last = static_cast<int>(left);
#if HWY_TARGET == HWY_AVX3
  if constexpr (std::is_floating_point_v<T>) {
    // Columns that fit into half a vector cost half as much.
    using Half = FloatRing<T, hn::CappedTag<T, kLanes / 2>>;
    if (last > kLanes && last <= kLanes + Half::kLanes) {
      compute_tile<V, kRows, 1, kUnitK, false>(t, a, b, c, kLanes);
      last -= kLanes;
      b += kLanes;
      c += kLanes;
    }
    if (last <= Half::kLanes) return compute_tile<Half, kRows, 1, kUnitK, true>(t, a, b, c, last);
  }
#endif
  if (last > kLanes) {
    compute_tile<V, kRows, 2, kUnitK, true>(t, a, b, c, last - kLanes);
  } else {
    compute_tile<V, kRows, 1, kUnitK, true>(t, a, b, c, last);
  }
}

template <class T, int kRows, bool kUnitK>
void tile(const GemmTile& t) {
  const auto* a = static_cast<const T*>(t.a);
  const auto* b = static_cast<const T*>(t.b);
  auto* c = static_cast<T*>(t.c);
  for (std::int64_t left = t.products;;) {
    compute_row_of_tiles<T, kRows, kUnitK>(t, a, b, c);
    if (--left == 0) return;
    a += t.a_step;
    b += t.b_step;
    c += t.c_step;
  }
}

template <class T, int kRows>
BG_INLINE void set_tiles(GemmKernels& kernels) {
  kernels.k_contiguous[kRows] = &tile<T, kRows, true>;
  kernels.row_contiguous[kRows] = &tile<T, kRows, false>;
  if constexpr (kRows > 1) set_tiles<T, kRows - 1>(kernels);
}

}  // namespace baregrad::kernels::HWY_NAMESPACE

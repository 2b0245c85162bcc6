// The tiles of a convolution: sums are kept in registers, one operand is broadcast, the other is
// read as vectors.
#include "backends/cpu/conv/conv.h"

#include "backends/cpu/gemm/isa/tile.h"
#include "backends/cpu/simd/families.h"

namespace baregrad::kernels::HWY_NAMESPACE {

namespace {

template <class V, int kRows, int kVecs, class T>
BG_INLINE void store_sums(const V (&acc)[kRows][kVecs], T* c, std::int64_t c_row, bool add) {
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) {
      T* at = c + i * c_row + v * V::kLanes;
      (add ? V::add(V::load(at), acc[i][v]) : acc[i][v]).store(at);
    }
  }
}

template <class T, int kRows, int kVecs>
BG_INLINE void conv_columns(const ConvTile& t, const T* x, T* c) {
  using V = Ring<T>;
  constexpr int kUnroll = kSanitized ? 1 : 2;
  V acc[kRows][kVecs];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) acc[i][v] = V::zero();
  }
  RowsOfA<true, kRows, T> rows(static_cast<const T*>(t.a), t.a_row);
  const std::int64_t* at = t.at;
  const auto step = [&](int p) BAREGRAD_LAMBDA_INLINE {
    const T* b = x + at[p];
    V bv[kVecs];
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) bv[v] = V::load(b + v * V::kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V av = V::splat(rows.row(i, p));
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) acc[i][v].add_product(av, bv[v]);
    }
  };
  std::int64_t p = t.k;
  for (; p >= kUnroll; p -= kUnroll) {
#pragma GCC unroll 4
    for (int u = 0; u < kUnroll; ++u) step(u);
    rows.advance(kUnroll);
    at += kUnroll;
  }
  for (; p > 0; --p) {
    step(0);
    rows.advance(1);
    ++at;
  }
  store_sums(acc, c, t.c_row, t.add);
}

template <class T, int kRows>
void conv_tile(const ConvTile& t) {
  constexpr int kLanes = Ring<T>::kLanes;
  constexpr int kWide = wide_vecs(kRows);
  const auto* x = static_cast<const T*>(t.x);
  auto* c = static_cast<T*>(t.c);
  std::int64_t left = t.cols;
  for (; left >= kWide * kLanes; left -= kWide * kLanes, x += kWide * kLanes, c += kWide * kLanes) {
    conv_columns<T, kRows, kWide>(t, x, c);
  }
  if constexpr (kWide > kTileVecs) {
    constexpr int kStep = kTileVecs * kLanes;
    for (; left >= kStep; left -= kStep, x += kStep, c += kStep) {
      conv_columns<T, kRows, kTileVecs>(t, x, c);
    }
  }
  if (left > 0) conv_columns<T, kRows, 1>(t, x, c);
}

template <class T, int kRows, int kVecs>
BG_INLINE void pixel_columns(const ConvPixels& t, const T* w, T* c) {
  using V = Ring<T>;
  constexpr int kUnroll = kSanitized ? 1 : 2;
  V acc[kRows][kVecs];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) acc[i][v] = V::zero();
  }
  const auto* x = static_cast<const T*>(t.x);
  const std::int64_t w_row = t.w_row;
  const std::int64_t* at = t.at;
  const auto step = [&](int p) BAREGRAD_LAMBDA_INLINE {
    const T* a = x + at[p];
    V bv[kVecs];
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) bv[v] = V::load(w + v * V::kLanes);
    w += w_row;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V av = V::splat(a + i);
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) acc[i][v].add_product(av, bv[v]);
    }
  };
  std::int64_t p = t.k;
  for (; p >= kUnroll; p -= kUnroll, at += kUnroll) {
#pragma GCC unroll 4
    for (int u = 0; u < kUnroll; ++u) step(u);
  }
  for (; p > 0; --p, ++at) step(0);
  store_sums(acc, c, t.c_row, t.add);
}

template <class T, int kRows>
void conv_pixels(const ConvPixels& t) {
  constexpr int kWidth = kTileVecs * Ring<T>::kLanes;
  const auto* w = static_cast<const T*>(t.w);
  auto* c = static_cast<T*>(t.c);
  std::int64_t left = t.cols;
  for (; left >= kWidth; left -= kWidth, w += kWidth, c += kWidth) {
    pixel_columns<T, kRows, kTileVecs>(t, w, c);
  }
  if (left > 0) pixel_columns<T, kRows, 1>(t, w, c);
}

/// Rows of the largest tile of sums: two pixels at a time, of two vectors each, must stay in
/// registers too.
constexpr int sum_rows() {
  if (kSanitized || HWY_TARGET == HWY_SCALAR) return 2;
  return HWY_TARGET == HWY_AVX3 ? 12 : 4;
}

template <class T, int kRows, int kVecs>
BG_INLINE void sum_columns(const ConvSum& s, const T* g, T* c) {
  using V = Ring<T>;
  V acc[kRows][kVecs];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) acc[i][v] = V::zero();
  }
  const auto* x = static_cast<const T*>(s.x);
  const std::int64_t g_row = s.g_row;
  for (std::int64_t y = 0; y < s.height; ++y, x += s.x_row) {
    std::int64_t p = 0;
    for (; p + 2 <= s.width; p += 2, g += 2 * g_row) {
      V b[2][kVecs];
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) {
        b[0][v] = V::load(g + v * V::kLanes);
        b[1][v] = V::load(g + g_row + v * V::kLanes);
      }
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const T* from = x + s.at[i] + p;
#pragma GCC unroll 2
        for (int u = 0; u < 2; ++u) {
          const V a = V::splat(from + u);
#pragma GCC unroll 8
          for (int v = 0; v < kVecs; ++v) acc[i][v].add_product(a, b[u][v]);
        }
      }
    }
    for (; p < s.width; ++p, g += g_row) {
      V b[kVecs];
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) b[v] = V::load(g + v * V::kLanes);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const V a = V::splat(x + s.at[i] + p);
#pragma GCC unroll 8
        for (int v = 0; v < kVecs; ++v) acc[i][v].add_product(a, b[v]);
      }
    }
  }
  store_sums(acc, c, s.c_row, s.add);
}

template <class T, int kRows>
void conv_sum(const ConvSum& s) {
  constexpr int kWidth = kTileVecs * Ring<T>::kLanes;
  const auto* g = static_cast<const T*>(s.g);
  auto* c = static_cast<T*>(s.c);
  std::int64_t left = s.cols;
  for (; left >= kWidth; left -= kWidth, g += kWidth, c += kWidth) {
    sum_columns<T, kRows, kTileVecs>(s, g, c);
  }
  if (left > 0) sum_columns<T, kRows, 1>(s, g, c);
}

/// n elements, contiguous on both sides.
template <class T>
BG_INLINE void copy_run(const T* HWY_RESTRICT from, T* HWY_RESTRICT to, std::int64_t n) {
  using V = Ring<T>;
  if (n < V::kLanes) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[i];
    return;
  }
  for (std::int64_t i = 0; i + V::kLanes <= n; i += V::kLanes) V::load(from + i).store(to + i);
  // The last vector overlaps the one before it: faster than element by element.
  V::load(from + n - V::kLanes).store(to + n - V::kLanes);
}

template <class T>
void stage_lines(const ConvLines& s) {
  const auto* from = static_cast<const T*>(s.from);
  auto* to = static_cast<T*>(s.to);
  const std::int64_t n = s.end - s.begin;
  for (std::int64_t line = 0; line < s.lines; ++line, from += s.from_line, to += s.length) {
    for (std::int64_t i = 0; i < s.begin; ++i) to[i] = T(0);
    for (std::int64_t i = s.end; i < s.length; ++i) to[i] = T(0);
    T* HWY_RESTRICT inner = to + s.begin;
    if (s.step == 1) {
      copy_run(from, inner, n);
    } else if (s.step == 2) {
      for (std::int64_t i = 0; i < n; ++i) inner[i] = from[i * 2];
    } else {
      for (std::int64_t i = 0; i < n; ++i) inner[i] = from[i * s.step];
    }
  }
}

/// float64 has fewer tiles, and none with vectors of filters, to keep the library small.
template <class T>
constexpr int kConvRows = sizeof(T) == 4 || kTileRows<T> <= 8 ? kTileRows<T> : 8;

template <class T, int kRows>
BG_INLINE void set_conv_tiles(ConvKernelsOf& kernels) {
  kernels.tile[kRows] = &conv_tile<T, kRows>;
  if constexpr (sizeof(T) == 4) kernels.pixels[kRows] = &conv_pixels<T, kRows>;
  if constexpr (kRows <= sum_rows()) kernels.sum[kRows] = &conv_sum<T, kRows>;
  if constexpr (kRows > 1) set_conv_tiles<T, kRows - 1>(kernels);
}

template <class T>
BG_INLINE void set_conv(ConvKernelsOf& kernels) {
  kernels.lanes = Ring<T>::kLanes;
  kernels.tile_rows = kConvRows<T>;
  kernels.sum_rows = sum_rows() < kConvRows<T> ? sum_rows() : kConvRows<T>;
  kernels.stage = &stage_lines<T>;
  set_conv_tiles<T, kConvRows<T>>(kernels);
}

}  // namespace

void register_conv(KernelTable& table) {
  auto* kernels = new ConvKernels;  // never deleted, like the table
  set_conv<float>(kernels->f32);
  set_conv<double>(kernels->f64);
  table.conv = kernels;
}

}  // namespace baregrad::kernels::HWY_NAMESPACE

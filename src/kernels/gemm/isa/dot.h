// Products of rows with columns that both lie contiguous along k: vectors run along k, and each sum
// is folded once at its end.
#pragma once

#include "kernels/gemm/isa/ring.h"
#include "kernels/gemm/kernels.h"

namespace baregrad::kernels::HWY_NAMESPACE {

constexpr int kDotRows = HWY_TARGET == HWY_AVX3 ? 4 : 2;
constexpr int kDotCols = 4;

template <class T, int kRows, int kCols>
BG_INLINE void dot_tile(const T* a, std::int64_t a_row, const T* b, std::int64_t b_col,
                        std::int64_t k, T* to, std::int64_t to_row) {
  using V = Ring<T>;
  constexpr int kLanes = V::kLanes;
  V acc[kRows][kCols];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kCols; ++j) acc[i][j] = V::zero();
  }
  const auto step = [&](auto load) BAREGRAD_LAMBDA_INLINE {
    V bv[kCols];
#pragma GCC unroll 8
    for (int j = 0; j < kCols; ++j) bv[j] = load(b + j * b_col);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const V av = load(a + i * a_row);
#pragma GCC unroll 8
      for (int j = 0; j < kCols; ++j) acc[i][j].add_product(av, bv[j]);
    }
    a += kLanes;
    b += kLanes;
  };
  std::int64_t left = k;
  for (; left >= kLanes; left -= kLanes) {
    step([](const T* at) BAREGRAD_LAMBDA_INLINE { return V::load(at); });
  }
  if (left > 0) {
    const auto n = static_cast<std::size_t>(left);
    step([n](const T* at) BAREGRAD_LAMBDA_INLINE { return V{Vec<T>::load_part(at, n).raw}; });
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kCols; ++j) {
      const typename V::D d;
      to[i * to_row + j] = hn::GetLane(hn::SumOfLanes(d, acc[i][j].raw));
    }
  }
}

template <class T, int kRows>
BG_INLINE void dot_rows(const GemmDot& t, const T* a, T* to) {
  const auto* b = static_cast<const T*>(t.b);
  // A lone row needs as many chains as the others have.
  constexpr int kWide = kRows == 1 ? 2 * kDotCols : kDotCols;
  std::int64_t j = 0;
  for (; j + kWide <= t.cols; j += kWide) {
    dot_tile<T, kRows, kWide>(a, t.a_row, b + j * t.b_col, t.b_col, t.k, to + j, t.to_row);
  }
  for (; j < t.cols; ++j) {
    dot_tile<T, kRows, 1>(a, t.a_row, b + j * t.b_col, t.b_col, t.k, to + j, t.to_row);
  }
}

template <class T>
void dot(const GemmDot& t) {
  const auto* a = static_cast<const T*>(t.a);
  auto* to = static_cast<T*>(t.to);
  std::int64_t i = 0;
  for (; i + kDotRows <= t.rows; i += kDotRows) {
    dot_rows<T, kDotRows>(t, a + i * t.a_row, to + i * t.to_row);
  }
  if constexpr (kDotRows > 2) {
    for (; i + 2 <= t.rows; i += 2) dot_rows<T, 2>(t, a + i * t.a_row, to + i * t.to_row);
  }
  for (; i < t.rows; ++i) dot_rows<T, 1>(t, a + i * t.a_row, to + i * t.to_row);
}

}  // namespace baregrad::kernels::HWY_NAMESPACE

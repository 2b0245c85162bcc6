// Products of rows with columns where both are contiguous along k: vectors run along k, and each
// sum is reduced to one number once, at its end.
#pragma once

#include "backends/cpu/gemm/isa/ring.h"
#include "backends/cpu/gemm/kernels.h"

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

/// kCols columns with all rows.
template <class T, int kCols>
BG_INLINE void dot_columns(const GemmDot& t, const T* b, T* to) {
  const auto* a = static_cast<const T*>(t.a);
  std::int64_t i = 0;
  for (; i + kDotRows <= t.rows; i += kDotRows) {
    dot_tile<T, kDotRows, kCols>(a + i * t.a_row, t.a_row, b, t.b_col, t.k, to + i * t.to_row,
                                 t.to_row);
  }
  if constexpr (kDotRows > 2) {
    for (; i + 2 <= t.rows; i += 2) {
      dot_tile<T, 2, kCols>(a + i * t.a_row, t.a_row, b, t.b_col, t.k, to + i * t.to_row, t.to_row);
    }
  }
  for (; i < t.rows; ++i) {
    dot_tile<T, 1, kCols>(a + i * t.a_row, t.a_row, b, t.b_col, t.k, to + i * t.to_row, t.to_row);
  }
}

/// The outer loop runs over columns: B is the large operand and is read once.
template <class T>
void dot(const GemmDot& t) {
  const auto* b = static_cast<const T*>(t.b);
  auto* to = static_cast<T*>(t.to);
  std::int64_t j = 0;
  // A single row needs as many chains as several rows have together.
  if (t.rows == 1) {
    for (; j + 2 * kDotCols <= t.cols; j += 2 * kDotCols) {
      dot_tile<T, 1, 2 * kDotCols>(static_cast<const T*>(t.a), t.a_row, b + j * t.b_col, t.b_col,
                                   t.k, to + j, t.to_row);
    }
  }
  for (; j + kDotCols <= t.cols; j += kDotCols) {
    dot_columns<T, kDotCols>(t, b + j * t.b_col, to + j);
  }
  for (; j < t.cols; ++j) dot_columns<T, 1>(t, b + j * t.b_col, to + j);
}

}  // namespace baregrad::kernels::HWY_NAMESPACE

// Staging: moving strided elements into contiguous tiles and back, by item size.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/abi.h"

namespace baregrad::kernels {

/// Calls f with an integral constant of the item size, so that copies of one element are inlined.
template <class F>
void with_itemsize(std::size_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      f(std::integral_constant<std::size_t, 1>{});
      break;
    case 2:
      f(std::integral_constant<std::size_t, 2>{});
      break;
    case 4:
      f(std::integral_constant<std::size_t, 4>{});
      break;
    default:
      f(std::integral_constant<std::size_t, 8>{});
      break;
  }
}

/// n elements from `src` (a byte stride apart) to `dst` (likewise). memcpy per element: neither
/// side need be aligned.
inline void strided_copy(char* dst, std::int64_t dst_stride, const char* src,
                         std::int64_t src_stride, std::int64_t n, std::size_t bytes) {
  const auto width = static_cast<std::int64_t>(bytes);
  if (dst_stride == width && src_stride == width) {
    std::memcpy(dst, src, static_cast<std::size_t>(n) * bytes);
    return;
  }
  with_itemsize(bytes, [&](auto size) {
    for (std::int64_t i = 0; i < n; ++i) {
      std::memcpy(dst + i * dst_stride, src + i * src_stride, size);
    }
  });
}

/// dst[r * cols + c] = src[r * row_stride + c * col_stride]; made for |row_stride| < |col_stride|:
/// whole cache lines are used while their neighbours are in L1.
inline void gather_block(char* dst, const char* src, std::int64_t rows, std::int64_t row_stride,
                         std::int64_t cols, std::int64_t col_stride, std::size_t bytes) {
  with_itemsize(bytes, [&](auto size) {
    for (std::int64_t c = 0; c < cols; ++c) {
      const char* from = src + c * col_stride;
      char* to = dst + c * static_cast<std::int64_t>(size);
      for (std::int64_t r = 0; r < rows; ++r) {
        std::memcpy(to + r * cols * static_cast<std::int64_t>(size), from + r * row_stride, size);
      }
    }
  });
}

inline bool is_aligned(const void* data, DType dtype) noexcept {
  return reinterpret_cast<std::uintptr_t>(data) % itemsize(dtype) == 0;
}

}  // namespace baregrad::kernels

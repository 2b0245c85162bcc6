// Staging: moving strided elements into contiguous tiles and back, by item size.
#pragma once

#include <cstdint>
#include <cstring>

#include "backends/cpu/table.h"

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

inline const StageKernels& stage_kernels(std::size_t bytes) {
  return active_table().stage[bytes == 8 ? 3 : bytes / 2];
}

/// n elements from `src` to `dst`, each with a stride in bytes. Neither side needs to be aligned.
inline void strided_copy(char* dst, std::int64_t dst_stride, const char* src,
                         std::int64_t src_stride, std::int64_t n, std::size_t bytes) {
  const auto width = static_cast<std::int64_t>(bytes);
  if (dst_stride == width && src_stride == width) {
    std::memcpy(dst, src, static_cast<std::size_t>(n) * bytes);
  } else if (dst_stride == width && src_stride == 0) {
    stage_kernels(bytes).fill(dst, src, n);
  } else if (dst_stride == width) {
    stage_kernels(bytes).gather(dst, src, src_stride, n);
  } else if (src_stride == width) {
    stage_kernels(bytes).scatter(dst, dst_stride, src, n);
  } else {
    // Captured by value: the compiler assumes that a write through char* may change what a
    // reference leads to.
    with_itemsize(bytes, [=](auto size) {
      for (std::int64_t i = 0; i < n; ++i) {
        std::memcpy(dst + i * dst_stride, src + i * src_stride, size);
      }
    });
  }
}

inline bool is_aligned(const void* data, DType dtype) noexcept {
  return reinterpret_cast<std::uintptr_t>(data) % itemsize(dtype) == 0;
}

}  // namespace baregrad::kernels

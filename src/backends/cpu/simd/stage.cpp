// Staging: gathers elements that lie apart, and repeats one value.
//
// Bits are moved and never interpreted, so one kernel serves all dtypes of a size. Pointers need no
// alignment here. Gaps between the first and the last element may be read, but are never written.
#include <cstddef>
#include <cstdint>

#include "backends/cpu/simd/families.h"
#include "ops/scalar_math.h"

namespace baregrad::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
BG_INLINE T load(const char* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
BG_INLINE void store(char* to, T value) {
  __builtin_memcpy(to, &value, sizeof value);
}
#if HWY_TARGET != HWY_SCALAR
/// For Highway's unaligned loads and stores only.
template <class T>
BG_INLINE T* typed(char* at) {
  return reinterpret_cast<T*>(at);
}
template <class T>
BG_INLINE const T* typed(const char* at) {
  return reinterpret_cast<const T*>(at);
}
#endif

template <class T>
void fill(char* dst, const char* value, std::int64_t n) {
  constexpr auto kWidth = static_cast<std::int64_t>(sizeof(T));
  const T one = load<T>(value);
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  constexpr auto kLanes = static_cast<std::int64_t>(HWY_LANES(T));
  const auto many = hn::Set(d, one);
  for (; n - i >= kLanes; i += kLanes) hn::StoreU(many, d, typed<T>(dst + i * kWidth));
  if (i == n) return;
  // The last vector may overlap the one before it: the values are the same.
  if (n >= kLanes) {
    hn::StoreU(many, d, typed<T>(dst + (n - kLanes) * kWidth));
    return;
  }
#endif
  for (; i < n; ++i) store<T>(dst + i * kWidth, one);
}

/// Every second element. The last vector is left out, since it would read past the last element.
template <class T>
std::int64_t gather_halves(char* dst, const char* src, std::int64_t n) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  constexpr auto kWidth = static_cast<std::int64_t>(sizeof(T));
  constexpr auto kLanes = static_cast<std::int64_t>(HWY_LANES(T));
  for (; n - i > kLanes; i += kLanes) {
    hn::Vec<decltype(d)> even;
    hn::Vec<decltype(d)> odd;
    hn::LoadInterleaved2(d, typed<T>(src + 2 * i * kWidth), even, odd);
    hn::StoreU(even, d, typed<T>(dst + i * kWidth));
  }
#else
  static_cast<void>(dst);
  static_cast<void>(src);
  static_cast<void>(n);
#endif
  return i;
}

template <class T>
std::int64_t gather_reversed(char* dst, const char* src, std::int64_t n) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  constexpr auto kWidth = static_cast<std::int64_t>(sizeof(T));
  constexpr auto kLanes = static_cast<std::int64_t>(HWY_LANES(T));
  for (; n - i >= kLanes; i += kLanes) {
    const auto x = hn::LoadU(d, typed<T>(src - (i + kLanes - 1) * kWidth));
    hn::StoreU(hn::Reverse(d, x), d, typed<T>(dst + i * kWidth));
  }
#else
  static_cast<void>(dst);
  static_cast<void>(src);
  static_cast<void>(n);
#endif
  return i;
}

template <class T>
void gather(char* dst, const char* src, std::int64_t stride, std::int64_t n) {
  constexpr auto kWidth = static_cast<std::int64_t>(sizeof(T));
  std::int64_t i = 0;
  if constexpr (sizeof(T) >= 4) {
    if (stride == 2 * kWidth) i = gather_halves<T>(dst, src, n);
    if (stride == -kWidth) i = gather_reversed<T>(dst, src, n);
  }
  for (; n - i >= 4; i += 4) {
    const char* from = src + i * stride;
    const T a = load<T>(from);
    const T b = load<T>(from + stride);
    const T c = load<T>(from + 2 * stride);
    const T d = load<T>(from + 3 * stride);
    char* to = dst + i * kWidth;
    store<T>(to, a);
    store<T>(to + kWidth, b);
    store<T>(to + 2 * kWidth, c);
    store<T>(to + 3 * kWidth, d);
  }
  for (; i < n; ++i) store<T>(dst + i * kWidth, load<T>(src + i * stride));
}

template <class T>
void scatter(char* dst, std::int64_t stride, const char* src, std::int64_t n) {
  constexpr auto kWidth = static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < n; ++i) store<T>(dst + i * stride, load<T>(src + i * kWidth));
}

#if HWY_TARGET != HWY_SCALAR
/// A square block transposed in registers: a 128-bit vector holds a row of it.
BG_INLINE void transpose_block(const char* src, std::int64_t src_stride, char* dst,
                               std::int64_t dst_stride, std::uint64_t) {
  const hn::FixedTag<std::uint64_t, 2> d;
  const auto a = hn::LoadU(d, typed<std::uint64_t>(src));
  const auto b = hn::LoadU(d, typed<std::uint64_t>(src + src_stride));
  hn::StoreU(hn::InterleaveLower(d, a, b), d, typed<std::uint64_t>(dst));
  hn::StoreU(hn::InterleaveUpper(d, a, b), d, typed<std::uint64_t>(dst + dst_stride));
}

BG_INLINE void transpose_block(const char* src, std::int64_t src_stride, char* dst,
                               std::int64_t dst_stride, std::uint32_t) {
  const hn::FixedTag<std::uint32_t, 4> d;
  const hn::FixedTag<std::uint64_t, 2> pairs;
  const auto row = [&](std::int64_t r) {
    return hn::LoadU(d, typed<std::uint32_t>(src + r * src_stride));
  };
  const auto put = [&](auto transposed, std::int64_t r) {
    hn::StoreU(hn::BitCast(d, transposed), d, typed<std::uint32_t>(dst + r * dst_stride));
  };
  const auto a = row(0);
  const auto b = row(1);
  const auto c = row(2);
  const auto e = row(3);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  put(hn::InterleaveLower(pairs, ab_low, ce_low), 0);
  put(hn::InterleaveUpper(pairs, ab_low, ce_low), 1);
  put(hn::InterleaveLower(pairs, ab_high, ce_high), 2);
  put(hn::InterleaveUpper(pairs, ab_high, ce_high), 3);
}

/// Of adjacent rows; returns the columns done, in whole blocks. The outer loop runs over columns,
/// so that a cache line of a column is used up while it is in L1.
template <class T>
std::int64_t transpose_blocks(char* dst, const char* src, std::int64_t rows, std::int64_t cols,
                              std::int64_t col_stride) {
  constexpr auto kWidth = static_cast<std::int64_t>(sizeof(T));
  constexpr std::int64_t kSide = 16 / kWidth;
  const std::int64_t dst_stride = cols * kWidth;
  std::int64_t c = 0;
  for (; cols - c >= kSide; c += kSide) {
    const char* from = src + c * col_stride;
    char* to = dst + c * kWidth;
    std::int64_t r = 0;
    for (; rows - r >= kSide; r += kSide) {
      transpose_block(from + r * kWidth, col_stride, to + r * dst_stride, dst_stride, T{});
    }
    for (; r < rows; ++r) {
      for (std::int64_t i = 0; i < kSide; ++i) {
        store<T>(to + r * dst_stride + i * kWidth, load<T>(from + r * kWidth + i * col_stride));
      }
    }
  }
  return c;
}
#endif

template <class T>
void transpose(char* dst, const char* src, std::int64_t rows, std::int64_t row_stride,
               std::int64_t cols, std::int64_t col_stride) {
  constexpr auto kWidth = static_cast<std::int64_t>(sizeof(T));
  std::int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) >= 4) {
    if (row_stride == kWidth) c = transpose_blocks<T>(dst, src, rows, cols, col_stride);
  }
#endif
  for (; c < cols; ++c) {
    const char* from = src + c * col_stride;
    char* to = dst + c * kWidth;
    for (std::int64_t r = 0; r < rows; ++r) {
      store<T>(to + r * cols * kWidth, load<T>(from + r * row_stride));
    }
  }
}

template <class T>
constexpr StageKernels kernels_for() {
  return {&fill<T>, &gather<T>, &scatter<T>, &transpose<T>};
}

}  // namespace

void register_staging(KernelTable& table) {
  table.stage[0] = kernels_for<std::uint8_t>();
  table.stage[1] = kernels_for<std::uint16_t>();
  table.stage[2] = kernels_for<std::uint32_t>();
  table.stage[3] = kernels_for<std::uint64_t>();
}

}  // namespace baregrad::kernels::HWY_NAMESPACE

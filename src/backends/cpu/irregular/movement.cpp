// Kernels of concat, roll and pad: copies of blocks of elements.
#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/irregular/irregular.h"
#include "backends/cpu/walkers/elementwise.h"
#include "backends/cpu/walkers/plan.h"
#include "backends/cpu/walkers/stage.h"
#include "core/multi_index.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

/// The block of `v` that starts `steps` elements along `axis`.
View block_from(View v, int axis, std::int64_t steps) noexcept {
  v.data = static_cast<char*>(v.data) +
           steps * v.strides[axis] * static_cast<std::int64_t>(itemsize(v.dtype));
  return v;
}

}  // namespace

void concat_kernel(const Call& call) {
  const int axis = call.attrs.as<ConcatAttrs>().axis;
  View rest = call.out[0];
  for (const View& in : call.in) {
    View part = rest;
    part.shape = in.shape;
    copy(in, part);
    rest = block_from(rest, axis, in.shape[axis]);
  }
}

void roll_kernel(const Call& call) {
  const Dims& shifts = call.attrs.as<RollAttrs>().shifts;
  const View& x = call.in[0];
  const View& out = call.out[0];
  if (numel(x) == 0) return;
  // A shifted axis is cut into two pieces that are exchanged; k shifted axes make 2^k blocks.
  std::array<int, kMaxDims> shifted{};
  int count = 0;
  for (int i = 0; i < x.ndim; ++i) {
    if (shifts[i] != 0) shifted[static_cast<std::size_t>(count++)] = i;
  }
  for (std::uint32_t block = 0; block < 1U << count; ++block) {
    std::array<std::int64_t, kMaxDims> shape{};
    std::copy_n(x.shape, x.ndim, shape.begin());
    View from = x;
    View to = out;
    for (int k = 0; k < count; ++k) {
      const int axis = shifted[static_cast<std::size_t>(k)];
      const std::int64_t shift = shifts[axis];
      const std::int64_t kept = x.shape[axis] - shift;
      const bool tail = (block >> k & 1U) != 0;
      shape[static_cast<std::size_t>(axis)] = tail ? shift : kept;
      if (tail) {
        from = block_from(from, axis, kept);
      } else {
        to = block_from(to, axis, shift);
      }
    }
    from.shape = shape.data();
    to.shape = shape.data();
    copy(from, to);
  }
}

void pad_kernel(const Call& call) {
  const View& x = call.in[0];
  const View& out = call.out[0];
  const std::int64_t total = numel(out);
  if (total == 0) return;
  // Rows along the last axis; a 0-d tensor is one row of one element.
  const int last = out.ndim - 1;
  const std::int64_t row_size = last < 0 ? 1 : out.shape[last];
  const std::int64_t before = last < 0 ? 0 : call.attrs.as<PadAttrs>().before[last];
  const std::int64_t middle = last < 0 ? 1 : x.shape[last];
  const std::int64_t after = row_size - before - middle;
  const Dims& offsets = call.attrs.as<PadAttrs>().before;
  const bool empty = numel(x) == 0;
  with_itemsize(itemsize(out.dtype), [&](auto size) {
    constexpr std::size_t kBytes = size;
    constexpr auto kWidth = static_cast<std::int64_t>(kBytes);
    const std::int64_t step = last < 0 ? 0 : x.strides[last] * kWidth;
    std::array<char, kBytes> border;
    std::memcpy(border.data(), &call.attrs.as<PadAttrs>().element, kBytes);
    const auto fill = [border](char* at, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) std::memcpy(at + i * kWidth, border.data(), kBytes);
    };
    const auto rows = [&, step](std::int64_t begin, std::int64_t end) {
      std::array<std::int64_t, kMaxDims> at{};  // in out
      const auto axis_size = [&](int i) { return out.shape[i]; };
      const auto move = [](int, std::int64_t) {};
      set_index(at.data(), last, begin, axis_size, move);
      char* to = static_cast<char*>(out.data) + begin * row_size * kWidth;
      for (std::int64_t r = begin; r < end; ++r, to += row_size * kWidth) {
        const char* from = static_cast<const char*>(x.data);
        bool inside = !empty;
        for (int i = 0; i < last; ++i) {
          const std::int64_t k = at[static_cast<std::size_t>(i)] - offsets[i];  // in x
          inside = inside && k >= 0 && k < x.shape[i];
          if (inside) from += k * x.strides[i] * kWidth;
        }
        if (inside) {
          fill(to, before);
          strided_copy(to + before * kWidth, kWidth, from, step, middle, kBytes);
          fill(to + (before + middle) * kWidth, after);
        } else {
          fill(to, row_size);
        }
        next_index(at.data(), last, axis_size, move);
      }
    };
    parallel::parallel_for(total / row_size, std::max<std::int64_t>(1, kElementGrain / row_size),
                           rows);
  });
}

}  // namespace baregrad::kernels

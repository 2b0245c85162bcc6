// Kernels of concat, roll and pad: blocks of elements copied from here to there.
#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/elementwise.h"
#include "kernels/irregular.h"
#include "kernels/stage.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

// Elements of one parallel chunk.
constexpr std::int64_t kGrain = 16384;

std::int64_t numel(const View& v) noexcept {
  std::int64_t n = 1;
  for (int i = 0; i < v.ndim; ++i) n *= v.shape[i];
  return n;
}

/// The block of `v` that starts `steps` elements along `axis`.
View moved(View v, int axis, std::int64_t steps) noexcept {
  v.data = static_cast<char*>(v.data) +
           steps * v.strides[axis] * static_cast<std::int64_t>(itemsize(v.dtype));
  return v;
}

}  // namespace

void concat_kernel(const IrregularCall& call) {
  const int axis = call.attrs.axis;
  View rest = call.out[0];
  for (const View& in : call.in) {
    View part = rest;
    part.shape = in.shape;
    copy(in, part);
    rest = moved(rest, axis, in.shape[axis]);
  }
}

void roll_kernel(const IrregularCall& call) {
  const View& x = call.in[0];
  const View& out = call.out[0];
  if (numel(x) == 0) return;
  // A shifted axis falls into two pieces that change places; k shifted axes make 2^k blocks.
  std::array<int, kMaxDims> shifted{};
  int count = 0;
  for (int i = 0; i < x.ndim; ++i) {
    if (call.attrs.dims[0][i] != 0) shifted[static_cast<std::size_t>(count++)] = i;
  }
  for (std::uint32_t block = 0; block < 1U << count; ++block) {
    std::array<std::int64_t, kMaxDims> shape{};
    std::copy_n(x.shape, x.ndim, shape.begin());
    View from = x;
    View to = out;
    for (int k = 0; k < count; ++k) {
      const int axis = shifted[static_cast<std::size_t>(k)];
      const std::int64_t shift = call.attrs.dims[0][axis];
      const std::int64_t kept = x.shape[axis] - shift;
      const bool tail = (block >> k & 1U) != 0;
      shape[static_cast<std::size_t>(axis)] = tail ? shift : kept;
      if (tail) {
        from = moved(from, axis, kept);
      } else {
        to = moved(to, axis, shift);
      }
    }
    from.shape = shape.data();
    to.shape = shape.data();
    copy(from, to);
  }
}

void pad_kernel(const IrregularCall& call) {
  const View& x = call.in[0];
  const View& out = call.out[0];
  const std::int64_t total = numel(out);
  if (total == 0) return;
  const std::size_t bytes = itemsize(out.dtype);
  const auto width = static_cast<std::int64_t>(bytes);
  char border[8];
  std::memcpy(border, &call.attrs.ints[0], sizeof border);
  const int last = out.ndim - 1;
  const std::int64_t before = last < 0 ? 0 : call.attrs.dims[0][last];
  const std::int64_t middle = last < 0 ? 1 : x.shape[last];
  const std::int64_t step = last < 0 ? 0 : x.strides[last] * width;
  const std::int64_t row_size = last < 0 ? 1 : out.shape[last];
  const auto fill = [&](char* at, std::int64_t n) { strided_copy(at, width, border, 0, n, bytes); };
  const auto row = [&](std::int64_t r) {
    char* to = static_cast<char*>(out.data) + r * row_size * width;
    const char* from = static_cast<const char*>(x.data);
    for (int i = last - 1; i >= 0; --i) {
      const std::int64_t at = r % out.shape[i] - call.attrs.dims[0][i];
      r /= out.shape[i];
      if (at < 0 || at >= x.shape[i]) {
        fill(to, row_size);
        return;
      }
      from += at * x.strides[i] * width;
    }
    fill(to, before);
    strided_copy(to + before * width, width, from, step, middle, bytes);
    fill(to + (before + middle) * width, row_size - before - middle);
  };
  parallel::parallel_for(total / row_size, std::max<std::int64_t>(1, kGrain / row_size),
                         [&](std::int64_t begin, std::int64_t end) {
                           for (std::int64_t r = begin; r < end; ++r) row(r);
                         });
}

}  // namespace baregrad::kernels

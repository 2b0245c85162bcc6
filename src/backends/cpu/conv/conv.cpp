// conv2d and its gradient towards the images: both are correlations of an image with filters.
#include <algorithm>
#include <utility>
#include <vector>

#include "backends/cpu/conv/conv_geometry.h"
#include "backends/cpu/conv/correlation.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/irregular/irregular.h"
#include "backends/cpu/walkers/scratch.h"
#include "core/integer_math.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

/// y[n, g] = A[g] x[n, g] [+ bias]: A is m x k, its elements `row` and `col` apart.
template <class T>
void multiply_pixels(const ConvGeometry& s, std::int64_t m, std::int64_t k, const T* a,
                     std::int64_t row, std::int64_t col, std::int64_t group, const T* x,
                     const T* bias, T* y) {
  const std::int64_t pixels = s.height * s.width;
  // Transposed, so that the bias is one number per column.
  GemmCall call;
  call.dtype = sizeof(T) == sizeof(float) ? DType::Float32 : DType::Float64;
  call.m = pixels;
  call.n = m;
  call.k = k;
  call.a = {x, 1, pixels};
  call.b = {a, col, row};
  call.c = y;
  call.c_row_stride = 1;
  call.c_col_stride = pixels;
  if (bias != nullptr) {
    call.epilogue.bias = bias;
    call.epilogue.bias_stride = 1;
  }
  const GemmBatchAxis batch[] = {
      {.size = s.images, .a_stride = s.groups * k * pixels, .c_stride = s.groups * m * pixels},
      {.size = s.groups,
       .a_stride = k * pixels,
       .b_stride = group,
       .c_stride = m * pixels,
       .bias_stride = m},
  };
  gemm_batched(call, batch);
}

/// Sums without terms: the bias, or zero. Takes time for `out` only, however large the filters are.
template <class T>
void fill_planes(T* out, std::int64_t images, std::int64_t planes, std::int64_t pixels,
                 const T* bias) {
  for (std::int64_t i = 0; i < images * planes; ++i, out += pixels) {
    std::fill_n(out, pixels, bias != nullptr ? bias[i % planes] : T(0));
  }
}

/// The filters of conv2d, weight[g * filters + m, c, tap], in a layout of their own.
template <class T>
void pack_filters(const ConvGeometry& s, const FilterLayout& layout, const T* weight, T* to) {
  const std::int64_t filters = s.filters / s.groups;
  const std::int64_t depth = s.channels / s.groups * s.kernel_height * s.kernel_width;
  if (!layout.tap_major) {
    for (std::int64_t o = 0; o < s.filters; ++o) {
      std::copy_n(weight + o * depth, depth, to + o * layout.row);
    }
    return;
  }
  constexpr std::int64_t kTaps = 64;
  const std::int64_t blocks = ceil_div(depth, kTaps);
  parallel::parallel_for(s.groups * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const std::int64_t group = b / blocks;
      const std::int64_t first = b % blocks * kTaps;
      gemm_kernels<T>().pack({weight + group * filters * depth + first, 1, depth,
                              std::min(kTaps, depth - first), filters, layout.row,
                              to + (group * depth + first) * layout.row, layout.row});
    }
  });
}

template <class T>
void conv2d(const Call& call) {
  const View& x = call.in[0];
  const View& weight = call.in[1];
  const View& y = call.out[0];
  const ConvGeometry s(call.attrs.as<ConvAttrs>(), x, y, weight.shape + 2);
  const T* bias = call.in.size() > 2 ? static_cast<const T*>(call.in[2].data) : nullptr;
  const std::int64_t channels = s.channels / s.groups;
  const std::int64_t filters = s.filters / s.groups;
  const auto* w = static_cast<const T*>(weight.data);
  if (s.pointwise()) {
    return multiply_pixels<T>(s, filters, channels, w, channels, 1, filters * channels,
                              static_cast<const T*>(x.data), bias, static_cast<T*>(y.data));
  }
  if (channels == 0) {
    return fill_planes(static_cast<T*>(y.data), s.images, s.filters, s.out_height * s.out_width,
                       bias);
  }
  const std::int64_t depth = channels * s.kernel_height * s.kernel_width;
  const FilterLayout layout = choose_filter_layout<T>(filters, depth, s.out_width,
                                                      s.images * s.out_height * s.out_width, 700);
  const bool packed = layout.tap_major || layout.row != depth;
  const std::int64_t rows = layout.tap_major ? s.groups * depth : s.filters;
  Scratch<64> memory(packed ? static_cast<std::size_t>(rows * layout.row) * sizeof(T) : 0);
  if (packed) pack_filters(s, layout, w, reinterpret_cast<T*>(memory.data()));

  Correlation<T> c;
  c.weight = packed ? reinterpret_cast<const T*>(memory.data()) : w;
  c.layout = layout;
  c.images = s.images;
  c.groups = s.groups;
  c.source = {channels, s.height, s.width};
  c.x = static_cast<const T*>(x.data);
  c.row_taps = s.taps(0);
  c.col_taps = s.taps(1);
  c.filters = filters;
  c.bias = bias;
  c.y = static_cast<T*>(y.data);
  c.y_height = c.rows = s.out_height;
  c.y_width = c.cols = s.out_width;
  correlate(std::move(c));
}

/// The pixels of the image at positions `at`, `at` + stride, ... along an axis: which taps reach
/// them, and from which places of the result.
struct Phase {
  Phase(const ConvGeometry& s, int axis, std::int64_t at) : start(at) {
    const std::int64_t size = axis == 0 ? s.height : s.width;
    const std::int64_t step = s.stride[axis];
    count = ceil_div(size - at, step);
    for (std::int64_t k = 0; k < s.kernel(axis); ++k) {
      const std::int64_t from = at + s.padding[axis] - k * s.dilation[axis];
      if (from % step != 0) continue;
      taps.at.push_back(from / step);
      kernel.push_back(k);
    }
  }
  std::int64_t start;
  std::int64_t count;
  ConvTaps taps;
  std::vector<std::int64_t> kernel;
};

/// One pair of phases: the pixels of the image that it computes, by a correlation of its own.
struct PhasePair {
  const Phase& row;
  const Phase& col;

  std::int64_t taps() const {
    return static_cast<std::int64_t>(row.kernel.size() * col.kernel.size());
  }
};

/// to[g, c, o, taps] = weight[g, o, c, kernel of the phases], rows of one channel.
template <class T>
void pack_channel_rows(const ConvGeometry& s, const PhasePair& phases, const T* weight, T* to,
                       std::int64_t row) {
  const std::int64_t channels = s.channels / s.groups;
  const std::int64_t filters = s.filters / s.groups;
  const std::int64_t area = s.kernel_height * s.kernel_width;
  const std::int64_t grain =
      std::max<std::int64_t>(1, (1 << 14) / std::max<std::int64_t>(filters * area, 1));
  const bool all = phases.taps() == area;
  parallel::parallel_for(s.channels, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      T* out = to + at * row;
      const T* from = weight + (at / channels * filters * channels + at % channels) * area;
      for (std::int64_t o = 0; o < filters; ++o, from += channels * area) {
        if (all) {
          out = std::copy_n(from, area, out);
          continue;
        }
        for (const std::int64_t kh : phases.row.kernel) {
          for (const std::int64_t kw : phases.col.kernel) *out++ = from[kh * s.kernel_width + kw];
        }
      }
    }
  });
}

/// to[g, o, taps, c] = weight[g, o, c, kernel of the phases], c padded with zeros to `row`.
template <class T>
void pack_tap_rows(const ConvGeometry& s, const PhasePair& phases, const T* weight, T* to,
                   std::int64_t row) {
  const std::int64_t channels = s.channels / s.groups;
  const std::int64_t area = s.kernel_height * s.kernel_width;
  const bool all = phases.taps() == area;
  parallel::parallel_for(s.filters, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      const T* from = weight + o * channels * area;
      T* out = to + o * phases.taps() * row;
      if (all) {
        gemm_kernels<T>().pack({from, 1, area, area, channels, row, out, row});
        continue;
      }
      for (const std::int64_t kh : phases.row.kernel) {
        for (const std::int64_t kw : phases.col.kernel) {
          const T* tap = from + kh * s.kernel_width + kw;
          gemm_kernels<T>().pack({tap, 1, area, 1, channels, row, out, row});
          out += row;
        }
      }
    }
  });
}

/// The pixels of the image that belong to a pair of phases. `packed` has room for the filters.
template <class T>
void correlate_phases(const ConvGeometry& s, const PhasePair& phases, const T* g, const T* weight,
                      T* packed, T* out) {
  const std::int64_t channels = s.channels / s.groups;
  const std::int64_t filters = s.filters / s.groups;
  const FilterLayout layout =
      choose_filter_layout<T>(channels, filters * phases.taps(), phases.col.count,
                              s.images * phases.row.count * phases.col.count, 150);
  if (layout.tap_major) {
    pack_tap_rows(s, phases, weight, packed, layout.row);
  } else {
    pack_channel_rows(s, phases, weight, packed, layout.row);
  }
  Correlation<T> c;
  c.images = s.images;
  c.groups = s.groups;
  c.source = {filters, s.out_height, s.out_width};
  c.x = g;
  c.row_taps = phases.row.taps;
  c.col_taps = phases.col.taps;
  c.filters = channels;
  c.weight = packed;
  c.layout = layout;
  c.y = out;
  c.y_height = s.height;
  c.y_width = s.width;
  c.rows = phases.row.count;
  c.cols = phases.col.count;
  c.row_start = phases.row.start;
  c.row_step = s.stride[0];
  c.col_start = phases.col.start;
  c.col_step = s.stride[1];
  correlate(std::move(c));
}

/// The phases of an axis that any tap reaches.
std::vector<Phase> reached_phases(const ConvGeometry& s, int axis) {
  const std::int64_t count = std::min(s.stride[axis], axis == 0 ? s.height : s.width);
  std::vector<Phase> out;
  for (std::int64_t i = 0; i < count; ++i) {
    Phase phase(s, axis, i);
    if (!phase.kernel.empty()) out.push_back(std::move(phase));
  }
  return out;
}

/// By correlations of g with the filters, one for each pair of phases of the stride.
template <class T>
void correlate_input(const ConvGeometry& s, const T* g, const T* weight, T* out) {
  // Room for the filters of any pair of phases in either layout.
  const std::int64_t channels = s.channels / s.groups;
  const std::int64_t most = s.filters / s.groups * s.kernel_height * s.kernel_width;
  const std::int64_t columns = round_up(channels, conv_kernels<T>().lanes);
  Scratch<64> packed(
      static_cast<std::size_t>(std::max(s.channels * (most + 16), s.groups * most * columns)) *
      sizeof(T));
  if (s.stride[0] > 1 || s.stride[1] > 1) {
    // Pixels that no window reaches.
    const std::int64_t total = s.images * s.channels * s.height * s.width;
    parallel::parallel_for(total, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      std::fill(out + begin, out + end, T(0));
    });
  }
  const std::vector<Phase> cols = reached_phases(s, 1);
  for (const Phase& row : reached_phases(s, 0)) {
    for (const Phase& col : cols) {
      correlate_phases(s, {row, col}, g, weight, reinterpret_cast<T*>(packed.data()), out);
    }
  }
}

template <class T>
void conv2d_input(const Call& call) {
  const View& weight = call.in[1];
  const View& out = call.out[0];
  const ConvGeometry s(call.attrs.as<ConvAttrs>(), out, call.in[0], weight.shape + 2);
  const std::int64_t channels = s.channels / s.groups;
  const std::int64_t filters = s.filters / s.groups;
  const auto* g = static_cast<const T*>(call.in[0].data);
  const auto* w = static_cast<const T*>(weight.data);
  const T* const no_bias = nullptr;
  auto* to = static_cast<T*>(out.data);
  if (s.pointwise()) {
    multiply_pixels<T>(s, channels, filters, w, 1, channels, filters * channels, g, no_bias, to);
  } else if (filters == 0) {
    fill_planes(to, s.images, s.channels, s.height * s.width, no_bias);
  } else if (suits_scatter(s)) {
    scatter_products<T>(s, g, w, to);
  } else {
    correlate_input(s, g, w, to);
  }
}

}  // namespace

void conv2d_kernel(const Call& call) {
  if (is_empty(call.out[0])) return;
  call.out[0].dtype == DType::Float32 ? conv2d<float>(call) : conv2d<double>(call);
}
void conv2d_input_kernel(const Call& call) {
  if (is_empty(call.out[0])) return;
  call.out[0].dtype == DType::Float32 ? conv2d_input<float>(call) : conv2d_input<double>(call);
}
}  // namespace baregrad::kernels

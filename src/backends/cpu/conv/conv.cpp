// conv2d and its gradient towards the images: both are correlations of an image with filters.
#include <algorithm>
#include <utility>
#include <vector>

#include "backends/cpu/conv/conv_geometry.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/irregular/irregular.h"
#include "backends/cpu/walkers/scratch.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

/// y[n, g * filters + m, row_start + i * row_step, ...] = bias + the sum over channels c and taps
/// of a[g, m, c, tap] * x[n, g * channels + c, i * step + tap, ...].
template <class T>
struct Correlation {
  std::int64_t images = 0;
  std::int64_t groups = 0;
  ConvImage source;  ///< of one group
  const T* x = nullptr;
  ConvTaps row_taps;
  ConvTaps col_taps;
  std::int64_t filters = 0;  ///< of one group
  /// Filters in rows a_row apart, or, `turned`, taps in rows of all filters of the group, filled up
  /// to a_row with zeros.
  const T* a = nullptr;
  std::int64_t a_row = 0;
  bool turned = false;
  const T* bias = nullptr;
  T* y = nullptr;
  std::int64_t y_height = 0;
  std::int64_t y_width = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t row_start = 0;
  std::int64_t row_step = 1;
  std::int64_t col_start = 0;
  std::int64_t col_step = 1;
};

/// A panel of filters and what it reads of the block stay in L1: so much of a sum is done at once.
constexpr std::int64_t kDepth = 192;

template <class T>
class Correlator {
 public:
  explicit Correlator(Correlation<T>& call)
      : call_(call),
        kernels_(conv_kernels<T>()),
        dense_(call.col_taps.apart = !call.turned && saves_vectors()),
        height_(block_rows(
            call.row_taps, call.col_taps,
            {.height = call.rows,
             .width = call.cols,
             .channels = call.source.channels,
             .row_bytes = call.filters * call.cols * static_cast<std::int64_t>(sizeof(T)),
             .images = call.images * call.groups,
             .lanes = kernels_.lanes,
             .item = sizeof(T)})),
        block_(call.row_taps, height_, call.col_taps, call.cols),
        distances_(block_.distances(call.source.channels)),
        blocks_((call.rows + height_ - 1) / height_),
        pixels_(round_up(block_.pixels(height_), kernels_.lanes)),
        filter_parts_(split_filters()) {}

  void run() {
    // Vectors read past the last pixel, of which nothing is kept.
    const std::int64_t planes = call_.source.channels * block_.channel() + kernels_.lanes;
    const std::int64_t all = call_.images * call_.groups * blocks_;
    const std::int64_t work =
        pixels_ * (filter_parts_.least + 1) * static_cast<std::int64_t>(distances_.size() + 16);
    const std::int64_t grain = std::max<std::int64_t>(1, (std::int64_t{1} << 18) / work);
    const bool shared = filter_parts_.count > 1;
    Scratch<64> staged(shared ? static_cast<std::size_t>(all * planes) * sizeof(T) : 0);
    if (shared) {
      parallel::parallel_for(all, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t at = begin; at < end; ++at) {
          stage(at, reinterpret_cast<T*>(staged.data()) + at * planes);
        }
      });
    }
    parallel::parallel_for(
        all * filter_parts_.count, grain, [&](std::int64_t begin, std::int64_t end) {
          const std::int64_t sums = sum_rows() * pixels_;
          Scratch<64> scratch(static_cast<std::size_t>(sums + (shared ? 0 : planes)) * sizeof(T));
          T* const own = reinterpret_cast<T*>(scratch.data());
          for (std::int64_t task = begin; task < end; ++task) {
            const std::int64_t at = task / filter_parts_.count;
            T* from = shared ? reinterpret_cast<T*>(staged.data()) + at * planes : own + sums;
            if (!shared) stage(at, from);
            compute(at, task % filter_parts_.count, from, own);
          }
        });
  }

 private:
  /// Rows of sums of one part: turned ones are whole vectors of filters, and have a place to be
  /// turned back to.
  std::int64_t sum_rows() const {
    const std::int64_t filters = filter_parts_.least + 1;
    return call_.turned ? round_up(filters, kernels_.lanes) + filters : filters;
  }
  /// Copying every tap's plane takes less time than computing the pixels between the rows would.
  bool saves_vectors() const {
    const auto taps = static_cast<std::int64_t>(call_.col_taps.at.size());
    const std::int64_t gap = ConvAxis(call_.col_taps, call_.cols).length - call_.cols;
    const auto height = static_cast<std::int64_t>(call_.row_taps.at.size());
    return taps <= 8 && height * call_.filters * gap > 4 * (call_.cols + gap);
  }
  /// Where rows do not make enough tasks, filters do.
  EvenSplit split_filters() const {
    constexpr std::int64_t kTasks = 8;
    const std::int64_t tasks = std::max<std::int64_t>(call_.images * call_.groups * blocks_, 1);
    const std::int64_t parts = (kTasks + tasks - 1) / tasks;
    if (call_.turned) {  // whole vectors
      const std::int64_t vectors = call_.a_row / kernels_.lanes;
      const std::int64_t each = std::max<std::int64_t>((vectors + parts - 1) / parts, 2);
      return {call_.filters, vectors % each == 0 && call_.filters == call_.a_row
                                 ? each * kernels_.lanes
                                 : call_.filters};
    }
    const std::int64_t least = 2 * kernels_.tile_rows;
    return {call_.filters, std::max((call_.filters + parts - 1) / parts, least)};
  }

  void stage(std::int64_t block, T* planes) const {
    const std::int64_t image = block / blocks_;  // and group
    const ConvImage& s = call_.source;
    stage_block(kernels_, block_, s, call_.x + image * s.channels * s.height * s.width,
                block % blocks_ * height_, planes);
    std::fill_n(planes + s.channels * block_.channel(), kernels_.lanes, T(0));
  }

  void compute(std::int64_t block, std::int64_t part, const T* planes, T* sums) const {
    if (call_.turned) return compute_turned(block, part, planes, sums);
    const std::int64_t image = block / blocks_;
    const std::int64_t group = image % call_.groups;
    const std::int64_t first_row = block % blocks_ * height_;
    const std::int64_t height = std::min(height_, call_.rows - first_row);
    const std::int64_t pixels = round_up(block_.pixels(height), kernels_.lanes);
    const std::int64_t first = filter_parts_.begin(part);
    const std::int64_t filters = filter_parts_.size(part);
    const auto depth = static_cast<std::int64_t>(distances_.size());
    const EvenSplit steps(depth, kDepth);
    const EvenSplit tiles(filters, kernels_.tile_rows);
    for (std::int64_t step = 0; step < steps.count; ++step) {
      const std::int64_t p = steps.begin(step);
      for (std::int64_t tile = 0; tile < tiles.count; ++tile) {
        const std::int64_t m = tiles.begin(tile);
        ConvTile t;
        t.a = call_.a + (group * call_.filters + first + m) * call_.a_row + p;
        t.a_row = call_.a_row;
        t.x = planes;
        t.at = distances_.data() + p;
        t.c = sums + m * pixels_;
        t.c_row = pixels_;
        t.k = steps.size(step);
        t.cols = pixels;
        t.add = step > 0;
        kernels_.tile[tiles.size(tile)](t);
      }
    }
    for (std::int64_t m = 0; m < filters; ++m) {
      const std::int64_t channel = image * call_.filters + first + m;
      store(sums + m * pixels_,
            call_.bias == nullptr ? T(0) : call_.bias[group * call_.filters + first + m],
            call_.y +
                (channel * call_.y_height + call_.row_start + first_row * call_.row_step) *
                    call_.y_width +
                call_.col_start,
            height);
    }
  }

  /// Vectors hold filters. Tiles are pieces of rows: no pixel between rows is computed.
  void compute_turned(std::int64_t block, std::int64_t part, const T* planes, T* sums) const {
    const std::int64_t image = block / blocks_;
    const std::int64_t group = image % call_.groups;
    const std::int64_t first_row = block % blocks_ * height_;
    const std::int64_t height = std::min(height_, call_.rows - first_row);
    const std::int64_t first = filter_parts_.begin(part);
    const std::int64_t filters = filter_parts_.size(part);
    const std::int64_t columns = round_up(filters, kernels_.lanes);
    const auto depth = static_cast<std::int64_t>(distances_.size());
    const EvenSplit steps(depth, kDepth);
    const EvenSplit tiles(call_.cols, kernels_.tile_rows);
    // A step of two vectors of filters stays in L1 while the pixels pass by.
    const std::int64_t width = 2 * kernels_.lanes;
    for (std::int64_t step = 0; step < steps.count; ++step) {
      const std::int64_t p = steps.begin(step);
      for (std::int64_t j = 0; j < columns; j += width) {
        ConvPixels t;
        t.at = distances_.data() + p;
        t.w = call_.a + (group * depth + p) * call_.a_row + first + j;
        t.w_row = call_.a_row;
        t.c_row = columns;
        t.k = steps.size(step);
        t.cols = std::min(width, columns - j);
        t.add = step > 0;
        for (std::int64_t y = 0; y < height; ++y) {
          for (std::int64_t tile = 0; tile < tiles.count; ++tile) {
            const std::int64_t x = tiles.begin(tile);
            t.x = planes + y * block_.width() + x;
            t.c = sums + (y * call_.cols + x) * columns + j;
            kernels_.pixels[tiles.size(tile)](t);
          }
        }
      }
    }
    const std::int64_t channel = image * call_.filters + first;
    T* to =
        call_.y +
        (channel * call_.y_height + call_.row_start + first_row * call_.row_step) * call_.y_width +
        call_.col_start;
    const std::int64_t plane = call_.y_height * call_.y_width;
    const bool plain = call_.col_step == 1 && call_.row_step == 1 && call_.cols == call_.y_width;
    const std::int64_t pixels = height * call_.cols;
    if (plain) {
      turn_back(sums, columns, filters, pixels, to, plane);
    } else {
      T* const lines = sums + columns * pixels_;
      turn_back(sums, columns, filters, pixels, lines, pixels);
      for (std::int64_t m = 0; m < filters; ++m) {
        for (std::int64_t y = 0; y < height; ++y) {
          const T* from = lines + m * pixels + y * call_.cols;
          T* line = to + m * plane + y * call_.row_step * call_.y_width;
          for (std::int64_t x = 0; x < call_.cols; ++x) line[x * call_.col_step] = from[x];
        }
      }
    }
    if (call_.bias == nullptr) return;
    for (std::int64_t m = 0; m < filters; ++m) {
      const T bias = call_.bias[group * call_.filters + first + m];
      T* line = to + m * plane;
      for (std::int64_t x = 0; x < pixels; ++x) line[x] += bias;
    }
  }

  /// to[m * plane + p] = from[p * columns + m]
  static void turn_back(const T* from, std::int64_t columns, std::int64_t filters,
                        std::int64_t pixels, T* to, std::int64_t plane) {
    gemm_kernels<T>().pack({from, 1, columns, filters, pixels, pixels, to, plane});
  }

  void store(const T* from, T bias, T* to, std::int64_t height) const {
    const std::int64_t step = call_.row_step * call_.y_width;
    std::int64_t cols = call_.cols;
    const bool plain = call_.col_step == 1;
    if (plain && cols == block_.width() && cols == step) {  // one run
      cols *= height;
      height = 1;
    }
    for (std::int64_t y = 0; y < height; ++y, from += block_.width(), to += step) {
      if (plain && call_.bias == nullptr) {
        std::copy_n(from, cols, to);
      } else if (plain) {
        for (std::int64_t x = 0; x < cols; ++x) to[x] = from[x] + bias;
      } else {
        for (std::int64_t x = 0; x < cols; ++x) to[x * call_.col_step] = from[x] + bias;
      }
    }
  }

  const Correlation<T>& call_;
  const ConvKernelsOf& kernels_;
  bool dense_;
  std::int64_t height_;
  ConvBlock block_;
  std::vector<std::int64_t> distances_;
  std::int64_t blocks_;
  std::int64_t pixels_;
  EvenSplit filter_parts_;
};

/// Rows of filters this far apart fall on the same sets of L1.
template <class T>
bool aliases(std::int64_t row, std::int64_t rows) {
  constexpr std::int64_t kAliasing = 2048;
  return rows > 4 && row * static_cast<std::int64_t>(sizeof(T)) % kAliasing == 0;
}

/// Whether vectors of filters, rather than of pixels, pay: they must be full, and there must be so
/// many pixels that turning the filters does not show.
template <class T>
bool suits_turned(std::int64_t filters, std::int64_t width, std::int64_t pixels,
                  std::int64_t least_pixels) {
  const ConvKernelsOf& kernels = conv_kernels<T>();
  const std::int64_t columns = round_up(filters, kernels.lanes);
  return kernels.pixels[1] != nullptr && gemm_kernels<T>().pack != nullptr &&
         10 * filters >= 9 * columns && width >= 6 && pixels >= least_pixels;
}

/// y[n, g] = A[g] x[n, g] [+ bias]: A is m x k in elements `row` and `col` apart.
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

/// Sums of no terms: the bias, or zero. However large the filters, nothing is walked but `out`.
template <class T>
void fill_planes(T* out, std::int64_t images, std::int64_t planes, std::int64_t pixels,
                 const T* bias) {
  for (std::int64_t i = 0; i < images * planes; ++i, out += pixels) {
    std::fill_n(out, pixels, bias != nullptr ? bias[i % planes] : T(0));
  }
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
  Correlation<T> c;
  c.turned = suits_turned<T>(filters, s.out_width, s.images * s.out_height * s.out_width, 700);
  c.a_row = aliases<T>(depth, filters) ? depth + 16 : depth;
  if (c.turned) c.a_row = round_up(filters, conv_kernels<T>().lanes);
  const bool copied = c.turned || c.a_row != depth;
  const std::int64_t size = c.turned ? s.groups * depth * c.a_row : s.filters * c.a_row;
  Scratch<64> copy(copied ? static_cast<std::size_t>(size) * sizeof(T) : 0);
  T* const filled = reinterpret_cast<T*>(copy.data());
  c.a = copied ? filled : w;
  if (c.turned) {
    constexpr std::int64_t kTaps = 64;
    const std::int64_t blocks = (depth + kTaps - 1) / kTaps;
    parallel::parallel_for(s.groups * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t group = b / blocks;
        const std::int64_t first = b % blocks * kTaps;
        gemm_kernels<T>().pack({w + group * filters * depth + first, 1, depth,
                                std::min(kTaps, depth - first), filters, c.a_row,
                                filled + (group * depth + first) * c.a_row, c.a_row});
      }
    });
  } else if (copied) {
    for (std::int64_t o = 0; o < s.filters; ++o) {
      std::copy_n(w + o * depth, depth, filled + o * c.a_row);
    }
  }
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
  Correlator<T>(c).run();
}

/// Pixels of the image that are `phase` modulo the stride along an axis: which taps reach them, and
/// from where in the result.
struct Phase {
  Phase(const ConvGeometry& s, int axis, std::int64_t at) : start(at) {
    const std::int64_t size = axis == 0 ? s.height : s.width;
    const std::int64_t step = s.stride[axis];
    count = (size - at + step - 1) / step;
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

/// a[g, c, o, taps] = weight[g, o, c, kernel of the phase]
template <class T>
void pack_transposed(const ConvGeometry& s, const Phase& row, const Phase& col, const T* weight,
                     T* a, std::int64_t a_row) {
  const std::int64_t channels = s.channels / s.groups;
  const std::int64_t filters = s.filters / s.groups;
  const std::int64_t area = s.kernel_height * s.kernel_width;
  const std::int64_t grain =
      std::max<std::int64_t>(1, (1 << 14) / std::max<std::int64_t>(filters * area, 1));
  const bool all = static_cast<std::int64_t>(row.kernel.size() * col.kernel.size()) == area;
  parallel::parallel_for(s.channels, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      T* to = a + at * a_row;
      const T* from = weight + (at / channels * filters * channels + at % channels) * area;
      for (std::int64_t o = 0; o < filters; ++o, from += channels * area) {
        if (all) {
          to = std::copy_n(from, area, to);
          continue;
        }
        for (const std::int64_t kh : row.kernel) {
          for (const std::int64_t kw : col.kernel) *to++ = from[kh * s.kernel_width + kw];
        }
      }
    }
  });
}

/// a[g, o, taps, c] = weight[g, o, c, kernel of the phase], c filled up to a_row with zeros.
template <class T>
void pack_turned(const ConvGeometry& s, const Phase& row, const Phase& col, const T* weight, T* a,
                 std::int64_t a_row) {
  const std::int64_t channels = s.channels / s.groups;
  const std::int64_t area = s.kernel_height * s.kernel_width;
  const auto taps = static_cast<std::int64_t>(row.kernel.size() * col.kernel.size());
  parallel::parallel_for(s.filters, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      const T* from = weight + o * channels * area;
      T* to = a + o * taps * a_row;
      if (taps == area) {
        gemm_kernels<T>().pack({from, 1, area, area, channels, a_row, to, a_row});
        continue;
      }
      for (const std::int64_t kh : row.kernel) {
        for (const std::int64_t kw : col.kernel) {
          const T* tap = from + kh * s.kernel_width + kw;
          gemm_kernels<T>().pack({tap, 1, area, 1, channels, a_row, to, a_row});
          to += a_row;
        }
      }
    }
  });
}

template <class T>
void conv2d_input(const Call& call) {
  const View& g = call.in[0];
  const View& weight = call.in[1];
  const View& out = call.out[0];
  const ConvGeometry s(call.attrs.as<ConvAttrs>(), out, g, weight.shape + 2);
  const std::int64_t channels = s.channels / s.groups;
  const std::int64_t filters = s.filters / s.groups;
  const auto* w = static_cast<const T*>(weight.data);
  if (s.pointwise()) {
    return multiply_pixels<T>(s, channels, filters, w, 1, channels, filters * channels,
                              static_cast<const T*>(g.data), nullptr, static_cast<T*>(out.data));
  }
  auto* to = static_cast<T*>(out.data);
  if (filters == 0)
    return fill_planes(to, s.images, s.channels, s.height * s.width,
                       static_cast<const T*>(nullptr));
  if (suits_spreading(s)) return spread_filters<T>(s, static_cast<const T*>(g.data), w, to);
  const std::int64_t most = filters * s.kernel_height * s.kernel_width;
  const std::int64_t columns = round_up(channels, conv_kernels<T>().lanes);
  Scratch<64> packed(
      static_cast<std::size_t>(std::max(s.channels * (most + 16), s.groups * most * columns)) *
      sizeof(T));
  T* a = reinterpret_cast<T*>(packed.data());
  const std::int64_t row_phases = std::min(s.stride[0], s.height);
  const std::int64_t col_phases = std::min(s.stride[1], s.width);
  if (s.stride[0] > 1 || s.stride[1] > 1) {
    // Pixels between the windows.
    const std::int64_t total = s.images * s.channels * s.height * s.width;
    parallel::parallel_for(total, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      std::fill(to + begin, to + end, T(0));
    });
  }
  std::vector<Phase> cols;
  for (std::int64_t q = 0; q < col_phases; ++q) {
    Phase col(s, 1, q);
    if (!col.kernel.empty()) cols.push_back(std::move(col));
  }
  for (std::int64_t r = 0; r < row_phases; ++r) {
    const Phase row(s, 0, r);
    if (row.kernel.empty()) continue;
    for (const Phase& col : cols) {
      const auto depth = filters * static_cast<std::int64_t>(row.kernel.size() * col.kernel.size());
      Correlation<T> c;
      c.turned = suits_turned<T>(channels, col.count, s.images * row.count * col.count, 150);
      if (c.turned) {
        c.a_row = columns;
        pack_turned(s, row, col, w, a, c.a_row);
      } else {
        c.a_row = aliases<T>(depth, channels) ? depth + 16 : depth;
        pack_transposed(s, row, col, w, a, c.a_row);
      }
      c.a = a;
      c.images = s.images;
      c.groups = s.groups;
      c.source = {filters, s.out_height, s.out_width};
      c.x = static_cast<const T*>(g.data);
      c.row_taps = row.taps;
      c.col_taps = col.taps;
      c.filters = channels;
      c.y = to;
      c.y_height = s.height;
      c.y_width = s.width;
      c.rows = row.count;
      c.cols = col.count;
      c.row_start = row.start;
      c.row_step = s.stride[0];
      c.col_start = col.start;
      c.col_step = s.stride[1];
      Correlator<T>(c).run();
    }
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

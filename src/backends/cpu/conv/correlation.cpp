// Correlations, block by block: stage the part of the image that a block reads, compute its sums
// by tiles, store them.
#include "backends/cpu/conv/correlation.h"

#include <algorithm>
#include <vector>

#include "backends/cpu/conv/conv_geometry.h"
#include "backends/cpu/gemm/blocks.h"
#include "backends/cpu/walkers/scratch.h"
#include "core/integer_math.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

/// Taps summed at a time: a panel of so many rows of filters and what it reads of the block stay in
/// L1.
constexpr std::int64_t kDepth = 192;
/// Tasks that a correlation is cut into at least, where its size allows.
constexpr std::int64_t kTasks = 8;

/// Whether to stage a plane for every tap along the columns. Copying these planes then takes less
/// time than computing the pixels between the rows would.
template <class T>
bool suits_separate_planes(const Correlation<T>& call) {
  if (call.layout.tap_major) return false;
  const auto taps = static_cast<std::int64_t>(call.col_taps.at.size());
  const std::int64_t gap = ConvAxis(call.col_taps, call.cols).length - call.cols;
  const auto height = static_cast<std::int64_t>(call.row_taps.at.size());
  return taps <= 8 && height * call.filters * gap > 4 * (call.cols + gap);
}

template <class T>
class Correlator {
 public:
  explicit Correlator(const Correlation<T>& call)
      : call_(call),
        kernels_(conv_kernels<T>()),
        height_(block_rows(
            call_.row_taps, call_.col_taps,
            {.height = call_.rows,
             .width = call_.cols,
             .channels = call_.source.channels,
             .row_bytes = call_.filters * call_.cols * static_cast<std::int64_t>(sizeof(T)),
             .images = call_.images * call_.groups,
             .lanes = kernels_.lanes,
             .item = sizeof(T)})),
        block_(call_.row_taps, height_, call_.col_taps, call_.cols),
        distances_(block_.distances(call_.source.channels)),
        blocks_(ceil_div(call_.rows, height_)),
        pixels_(round_up(block_.pixels(height_), kernels_.lanes)),
        filter_parts_(split_filters()) {}

  void run() {
    // Vectors read past the last pixel; the results of these lanes are dropped.
    const std::int64_t planes = call_.source.channels * block_.channel() + kernels_.lanes;
    const std::int64_t all = call_.images * call_.groups * blocks_;
    const std::int64_t work = pixels_ * filter_parts_.largest() * (depth() + 16);
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
            compute(piece(at, task % filter_parts_.count), from, own);
          }
        });
  }

 private:
  /// The results of one task: some rows of one image and group, for some of the group's filters.
  struct Piece {
    std::int64_t image;  ///< counts the groups of all images
    std::int64_t group;
    std::int64_t first_row;
    std::int64_t rows;
    std::int64_t first_filter;  ///< within the group
    std::int64_t filters;
  };

  Piece piece(std::int64_t block, std::int64_t part) const {
    const std::int64_t image = block / blocks_;
    const std::int64_t first_row = block % blocks_ * height_;
    return {image,
            image % call_.groups,
            first_row,
            std::min(height_, call_.rows - first_row),
            filter_parts_.begin(part),
            filter_parts_.size(part)};
  }

  std::int64_t depth() const { return static_cast<std::int64_t>(distances_.size()); }
  std::int64_t y_plane() const { return call_.y_height * call_.y_width; }

  /// Rows of sums of one part. The tap-major layout needs whole vectors of filters, and room for
  /// the transposed sums.
  std::int64_t sum_rows() const {
    const std::int64_t filters = filter_parts_.largest();
    return call_.layout.tap_major ? round_up(filters, kernels_.lanes) + filters : filters;
  }

  /// Where rows of results do not make enough tasks, filters are split too.
  EvenSplit split_filters() const {
    const std::int64_t tasks = std::max<std::int64_t>(call_.images * call_.groups * blocks_, 1);
    const std::int64_t parts = ceil_div(kTasks, tasks);
    if (call_.layout.tap_major) {  // whole vectors
      const std::int64_t vectors = call_.layout.row / kernels_.lanes;
      const std::int64_t each = std::max<std::int64_t>(ceil_div(vectors, parts), 2);
      const bool even = vectors % each == 0 && call_.filters == call_.layout.row;
      return EvenSplit::of_at_most(call_.filters, even ? each * kernels_.lanes : call_.filters);
    }
    const std::int64_t least = 2 * kernels_.tile_rows;
    return EvenSplit::of_at_most(call_.filters, std::max(ceil_div(call_.filters, parts), least));
  }

  void stage(std::int64_t block, T* planes) const {
    const std::int64_t image = block / blocks_;  // and group
    const ConvImage& s = call_.source;
    stage_block(kernels_, block_, s, call_.x + image * s.channels * s.height * s.width,
                block % blocks_ * height_, planes);
    std::fill_n(planes + s.channels * block_.channel(), kernels_.lanes, T(0));
  }

  void compute(const Piece& p, const T* planes, T* sums) const {
    if (call_.layout.tap_major) {
      sum_filter_vectors(p, planes, sums);
      store_filter_vectors(p, sums);
    } else {
      sum_pixel_vectors(p, planes, sums);
      store_pixel_vectors(p, sums);
    }
  }

  /// sums[filter][pixel], rows pixels_ apart. Pixels run along the block: those between the rows of
  /// results are computed too, and not stored.
  void sum_pixel_vectors(const Piece& p, const T* planes, T* sums) const {
    const std::int64_t pixels = round_up(block_.pixels(p.rows), kernels_.lanes);
    const EvenSplit steps = EvenSplit::of_at_most(depth(), kDepth);
    const EvenSplit tiles = EvenSplit::of_at_most(p.filters, kernels_.tile_rows);
    const T* const filters =
        call_.weight + (p.group * call_.filters + p.first_filter) * call_.layout.row;
    for (std::int64_t step = 0; step < steps.count; ++step) {
      const std::int64_t tap = steps.begin(step);
      for (std::int64_t tile = 0; tile < tiles.count; ++tile) {
        const std::int64_t m = tiles.begin(tile);
        ConvTile t;
        t.a = filters + m * call_.layout.row + tap;
        t.a_row = call_.layout.row;
        t.x = planes;
        t.at = distances_.data() + tap;
        t.c = sums + m * pixels_;
        t.c_row = pixels_;
        t.k = steps.size(step);
        t.cols = pixels;
        t.add = step > 0;
        kernels_.tile[tiles.size(tile)](t);
      }
    }
  }

  void store_pixel_vectors(const Piece& p, const T* sums) const {
    for (std::int64_t m = 0; m < p.filters; ++m) {
      store_plane(sums + m * pixels_, bias(p, m), result(p, m), p.rows);
    }
  }

  /// sums[pixel][filter], rows of whole vectors of filters. Tiles are pieces of rows of results: no
  /// pixel between the rows is computed.
  void sum_filter_vectors(const Piece& p, const T* planes, T* sums) const {
    const std::int64_t columns = round_up(p.filters, kernels_.lanes);
    const EvenSplit steps = EvenSplit::of_at_most(depth(), kDepth);
    // Two vectors of filters by one step of taps stay in L1 while all pixels are computed.
    const std::int64_t width = 2 * kernels_.lanes;
    for (std::int64_t step = 0; step < steps.count; ++step) {
      const std::int64_t tap = steps.begin(step);
      for (std::int64_t j = 0; j < columns; j += width) {
        ConvPixels t;
        t.at = distances_.data() + tap;
        t.w = call_.weight + (p.group * depth() + tap) * call_.layout.row + p.first_filter + j;
        t.w_row = call_.layout.row;
        t.c_row = columns;
        t.k = steps.size(step);
        t.cols = std::min(width, columns - j);
        t.add = step > 0;
        sum_pixel_tiles(t, p.rows, planes, sums + j);
      }
    }
  }

  /// `t` for all pixels of `rows` rows of results.
  void sum_pixel_tiles(ConvPixels& t, std::int64_t rows, const T* planes, T* sums) const {
    const EvenSplit tiles = EvenSplit::of_at_most(call_.cols, kernels_.tile_rows);
    for (std::int64_t y = 0; y < rows; ++y) {
      for (std::int64_t tile = 0; tile < tiles.count; ++tile) {
        const std::int64_t x = tiles.begin(tile);
        t.x = planes + y * block_.width() + x;
        t.c = sums + (y * call_.cols + x) * t.c_row;
        kernels_.pixels[tiles.size(tile)](t);
      }
    }
  }

  void store_filter_vectors(const Piece& p, T* sums) const {
    const std::int64_t columns = round_up(p.filters, kernels_.lanes);
    const std::int64_t pixels = p.rows * call_.cols;
    if (call_.col_step == 1 && call_.row_step == 1 && call_.cols == call_.y_width) {
      transpose(sums, columns, p.filters, pixels, result(p, 0), y_plane());
      if (call_.bias != nullptr) add_bias(p);
      return;
    }
    T* const lines = sums + columns * pixels_;
    transpose(sums, columns, p.filters, pixels, lines, pixels);
    for (std::int64_t m = 0; m < p.filters; ++m) scatter(p, m, lines + m * pixels);
  }

  /// to[filter * plane + pixel] = from[pixel * columns + filter]
  static void transpose(const T* from, std::int64_t columns, std::int64_t filters,
                        std::int64_t pixels, T* to, std::int64_t plane) {
    gemm_kernels<T>().pack({from, 1, columns, filters, pixels, pixels, to, plane});
  }

  void add_bias(const Piece& p) const {
    for (std::int64_t m = 0; m < p.filters; ++m) {
      const T value = bias(p, m);
      T* line = result(p, m);
      for (std::int64_t x = 0; x < p.rows * call_.cols; ++x) line[x] += value;
    }
  }

  /// The results of one filter to places row_step and col_step apart.
  void scatter(const Piece& p, std::int64_t filter, const T* from) const {
    T* to = result(p, filter);
    for (std::int64_t y = 0; y < p.rows; ++y, from += call_.cols) {
      T* line = to + y * call_.row_step * call_.y_width;
      for (std::int64_t x = 0; x < call_.cols; ++x) line[x * call_.col_step] = from[x];
    }
  }

  /// Where the first result of a filter belongs.
  T* result(const Piece& p, std::int64_t filter) const {
    const std::int64_t channel = p.image * call_.filters + p.first_filter + filter;
    const std::int64_t row = call_.row_start + p.first_row * call_.row_step;
    return call_.y + (channel * call_.y_height + row) * call_.y_width + call_.col_start;
  }
  T bias(const Piece& p, std::int64_t filter) const {
    if (call_.bias == nullptr) return T(0);
    return call_.bias[p.group * call_.filters + p.first_filter + filter];
  }

  void store_plane(const T* from, T bias, T* to, std::int64_t height) const {
    const std::int64_t step = call_.row_step * call_.y_width;
    std::int64_t cols = call_.cols;
    const bool contiguous = call_.col_step == 1;
    if (contiguous && cols == block_.width() && cols == step) {  // one run
      cols *= height;
      height = 1;
    }
    for (std::int64_t y = 0; y < height; ++y, from += block_.width(), to += step) {
      if (contiguous && call_.bias == nullptr) {
        std::copy_n(from, cols, to);
      } else if (contiguous) {
        for (std::int64_t x = 0; x < cols; ++x) to[x] = from[x] + bias;
      } else {
        for (std::int64_t x = 0; x < cols; ++x) to[x * call_.col_step] = from[x] + bias;
      }
    }
  }

  const Correlation<T>& call_;
  const ConvKernelsOf& kernels_;
  std::int64_t height_;  ///< rows of results of a block
  ConvBlock block_;
  std::vector<std::int64_t> distances_;
  std::int64_t blocks_;  ///< of one image and group
  std::int64_t pixels_;  ///< of a block, in whole vectors
  EvenSplit filter_parts_;
};

/// Whether vectors of filters pay off: they must be nearly full, and there must be so many pixels
/// that transposing the filters takes little of the time.
template <class T>
bool suits_filter_vectors(std::int64_t filters, std::int64_t width, std::int64_t pixels,
                          std::int64_t least_pixels) {
  const ConvKernelsOf& kernels = conv_kernels<T>();
  return kernels.pixels[1] != nullptr && gemm_kernels<T>().pack != nullptr &&
         10 * filters >= 9 * round_up(filters, kernels.lanes) && width >= 6 &&
         pixels >= least_pixels;
}

}  // namespace

template <class T>
FilterLayout choose_filter_layout(std::int64_t filters, std::int64_t depth, std::int64_t width,
                                  std::int64_t pixels, std::int64_t least_pixels) {
  if (suits_filter_vectors<T>(filters, width, pixels, least_pixels)) {
    return {true, round_up(filters, conv_kernels<T>().lanes)};
  }
  constexpr std::int64_t kPadding = 16;
  const bool alias = rows_alias_in_l1(filters, depth * static_cast<std::int64_t>(sizeof(T)));
  return {false, alias ? depth + kPadding : depth};
}
template FilterLayout choose_filter_layout<float>(std::int64_t, std::int64_t, std::int64_t,
                                                  std::int64_t, std::int64_t);
template FilterLayout choose_filter_layout<double>(std::int64_t, std::int64_t, std::int64_t,
                                                   std::int64_t, std::int64_t);

template <class T>
void correlate(Correlation<T> call) {
  call.col_taps.separate_planes = suits_separate_planes(call);
  Correlator<T>(call).run();
}
template void correlate(Correlation<float>);
template void correlate(Correlation<double>);

}  // namespace baregrad::kernels

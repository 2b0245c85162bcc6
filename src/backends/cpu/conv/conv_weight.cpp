// The gradient of conv2d towards its filters: sums over all pixels of all images.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/conv/conv_geometry.h"
#include "backends/cpu/irregular/irregular.h"
#include "backends/cpu/walkers/scratch.h"
#include "core/integer_math.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

/// C[k][o] = the sum over images and pixels of x[tap k of the pixel] * g[o].
///
/// The blocks of rows of all images are cut into a few runs, by shape alone. The sums of a run are
/// made in the order of its blocks; then the runs are added in order.
template <class T>
class WeightSums {
 public:
  WeightSums(const ConvGeometry& s, const T* x, const T* g)
      : s_(s),
        x_(x),
        g_(g),
        kernels_(conv_kernels<T>()),
        channels_(s.channels / s.groups),
        filters_(s.filters / s.groups),
        area_(s.kernel_height * s.kernel_width),
        columns_(filters_ == 1 ? 1 : round_up(filters_, kernels_.lanes)),
        taps_{s.taps(0), s.taps(1)},
        height_(block_height()),
        blocks_(ceil_div(s.out_height, height_)),
        runs_(split_blocks()),
        parts_(split_channels()),
        block_(taps_[0], height_, taps_[1], s.out_width),
        distances_(block_.distances(parts_.largest())) {}

  void run(T* out) {
    const std::int64_t rows = s_.groups * channels_ * area_;
    Scratch<64> partial(static_cast<std::size_t>(runs_.count * rows * columns_) * sizeof(T));
    T* const sums = reinterpret_cast<T*>(partial.data());
    // Where several parts of the channels read the same gradient, it is transposed once for all.
    const std::int64_t blocks = s_.images * blocks_;
    const bool shared = parts_.count > 1;
    Scratch<64> common(
        shared ? static_cast<std::size_t>(blocks * s_.groups * gradient_size()) * sizeof(T) : 0);
    T* const gradients = reinterpret_cast<T*>(common.data());
    if (shared) transpose_all(gradients);
    parallel::parallel_for(
        runs_.count * s_.groups * parts_.count, 1, [&](std::int64_t begin, std::int64_t end) {
          const std::int64_t planes = parts_.largest() * block_.channel();
          const std::int64_t own = shared ? 0 : gradient_size();
          Scratch<64> scratch(static_cast<std::size_t>(planes + own) * sizeof(T));
          T* const staged = reinterpret_cast<T*>(scratch.data());
          for (std::int64_t task = begin; task < end; ++task) {
            add_run(Task(*this, task), shared ? gradients : nullptr, staged, staged + planes, sums);
          }
        });
    add_runs(sums, runs_.count, rows, out);
  }

 private:
  static constexpr std::int64_t kTasks = 16;
  static constexpr std::int64_t kPixelsOfRun = 512;
  static constexpr std::int64_t kRunBytes = 1 << 24;

  /// Some channels of one group, summed over one run of blocks.
  struct Task {
    Task(const WeightSums& of, std::int64_t task)
        : run(task / of.parts_.count / of.s_.groups),
          group(task / of.parts_.count % of.s_.groups),
          first_channel(group * of.channels_ + of.parts_.begin(task % of.parts_.count)),
          channels(of.parts_.size(task % of.parts_.count)) {}
    std::int64_t run;
    std::int64_t group;
    std::int64_t first_channel;  ///< of the image
    std::int64_t channels;
  };

  /// Rows of one image's results; all images' blocks are numbered one after the other.
  struct BlockRows {
    std::int64_t image, first, count;
  };
  BlockRows rows_of(std::int64_t block) const {
    const std::int64_t first = block % blocks_ * height_;
    return {block / blocks_, first, std::min(height_, s_.out_height - first)};
  }

  std::int64_t block_height() const {
    return block_rows(taps_[0], taps_[1],
                      {.height = s_.out_height,
                       .width = s_.out_width,
                       .channels = channels_,
                       .row_bytes = filters_ * s_.out_width * static_cast<std::int64_t>(sizeof(T)),
                       .images = 8,
                       .lanes = 1,
                       .item = sizeof(T)});
  }
  /// Each run costs a pass over all filters at the end.
  EvenSplit split_blocks() const {
    const std::int64_t blocks = s_.images * blocks_;
    const std::int64_t filter_bytes =
        s_.groups * channels_ * area_ * columns_ * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t pixels = s_.images * s_.out_height * s_.out_width;
    const std::int64_t most =
        std::min({blocks, pixels / kPixelsOfRun,
                  ceil_div(kRunBytes, std::max<std::int64_t>(filter_bytes, 1)), kTasks});
    return EvenSplit::of_at_most(blocks, ceil_div(blocks, std::max<std::int64_t>(most, 1)));
  }
  /// Where runs and groups do not make enough tasks, channels are split too. Each part costs a
  /// pass over the gradient.
  EvenSplit split_channels() const {
    const std::int64_t wanted = ceil_div(kTasks, runs_.count * s_.groups);
    // Four channels of nine taps are three whole tiles.
    const std::int64_t each = round_up(ceil_div(channels_, wanted), 4);
    return EvenSplit::of_at_most(channels_, std::max<std::int64_t>(each, 16));
  }

  /// Elements of the transposed gradient of one block and group. Vectors read past the last pixel;
  /// the results of these lanes are dropped.
  std::int64_t gradient_size() const {
    return height_ * s_.out_width * filters_ + kernels_.lanes * 2;
  }

  /// to[block][group]: the gradients of all blocks.
  void transpose_all(T* to) const {
    parallel::parallel_for(
        s_.images * blocks_ * s_.groups, 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t at = begin; at < end; ++at) {
            transpose_gradient(rows_of(at / s_.groups), at % s_.groups, to + at * gradient_size());
          }
        });
  }

  /// to[pixel][o] = g[image, o, pixel], of some rows of the result.
  void transpose_gradient(const BlockRows& rows, std::int64_t group, T* to) const {
    const std::int64_t plane = s_.out_height * s_.out_width;
    const std::int64_t pixels = rows.count * s_.out_width;
    const T* from =
        g_ + (rows.image * s_.filters + group * filters_) * plane + rows.first * s_.out_width;
    if (filters_ == 1 || plane == 1) {
      std::copy_n(from, pixels * filters_, to);
    } else {
      transpose(from, plane, filters_, pixels, to);
    }
    std::fill_n(to + pixels * filters_, kernels_.lanes * 2, T(0));
  }

  /// The sums of a task. The gradients of all blocks are in `shared`, or, where that is null, made
  /// in `own` block by block.
  void add_run(const Task& task, const T* shared, T* planes, T* own, T* sums) const {
    const std::int64_t rows = s_.groups * channels_ * area_;
    T* const to = sums + (task.run * rows + task.first_channel * area_) * columns_;
    for (std::int64_t block = runs_.begin(task.run); block < runs_.end(task.run); ++block) {
      const BlockRows lines = rows_of(block);
      const T* image = x_ + (lines.image * s_.channels + task.first_channel) * s_.height * s_.width;
      stage_block(kernels_, block_, {task.channels, s_.height, s_.width}, image, lines.first,
                  planes);
      if (shared == nullptr) transpose_gradient(lines, task.group, own);
      const T* g =
          shared == nullptr ? own : shared + (block * s_.groups + task.group) * gradient_size();
      add_block(task.channels * area_, planes, g, lines.count, to, block > runs_.begin(task.run));
    }
  }

  /// to[k][o] = (add ? to[k][o] : 0) + the sum over `count` rows of one block, for k < rows.
  void add_block(std::int64_t rows, const T* planes, const T* g, std::int64_t count, T* to,
                 bool add) const {
    if (filters_ == 1) {
      for (std::int64_t k = 0; k < rows; ++k) {
        const T total =
            dot(planes + distances_[static_cast<std::size_t>(k)], block_.width(), g, count);
        to[k] = add ? to[k] + total : total;
      }
      return;
    }
    const EvenSplit tiles = EvenSplit::of_at_most(rows, kernels_.sum_rows);
    for (std::int64_t tile = 0; tile < tiles.count; ++tile) {
      const std::int64_t k = tiles.begin(tile);
      ConvSum sum;
      sum.x = planes;
      sum.at = distances_.data() + k;
      sum.x_row = block_.width();
      sum.g = g;
      sum.g_row = filters_;
      sum.c = to + k * columns_;
      sum.c_row = columns_;
      sum.height = count;
      sum.width = s_.out_width;
      sum.cols = columns_;
      sum.add = add;
      kernels_.sum[tiles.size(tile)](sum);
    }
  }

  /// With one filter, vectors run along the rows of pixels.
  T dot(const T* x, std::int64_t x_row, const T* g, std::int64_t height) const {
    typedef T Vector __attribute__((vector_size(16)));  // what every x86-64 has
    constexpr std::int64_t kWidth = sizeof(Vector) / sizeof(T);
    constexpr std::int64_t kLanes = 2 * kWidth;
    Vector sums[2] = {};
    T rest[kLanes] = {};
    for (std::int64_t y = 0; y < height; ++y, x += x_row, g += s_.out_width) {
      std::int64_t p = 0;
      for (; p + kLanes <= s_.out_width; p += kLanes) {
        Vector a[2];
        Vector b[2];
        std::memcpy(&a[0], x + p, sizeof(Vector));
        std::memcpy(&a[1], x + p + kWidth, sizeof(Vector));
        std::memcpy(&b[0], g + p, sizeof(Vector));
        std::memcpy(&b[1], g + p + kWidth, sizeof(Vector));
        sums[0] += a[0] * b[0];
        sums[1] += a[1] * b[1];
      }
      for (std::int64_t l = 0; p < s_.out_width; ++p, ++l) rest[l] += x[p] * g[p];
    }
    T lanes[kLanes];
    std::memcpy(lanes, sums, sizeof(sums));
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += rest[l];
    for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
      for (std::int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    }
    return lanes[0];
  }

  /// out[g, o, k] = the runs' sums, in order.
  void add_runs(T* sums, std::int64_t runs, std::int64_t rows, T* out) const {
    const std::int64_t all = rows * columns_;
    if (runs > 1) {
      parallel::parallel_for(all, 1 << 13, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t run = 1; run < runs; ++run) {
          const T* from = sums + run * all;
          for (std::int64_t i = begin; i < end; ++i) sums[i] += from[i];
        }
      });
    }
    const std::int64_t depth = channels_ * area_;
    constexpr std::int64_t kFilters = 16;
    const std::int64_t blocks = ceil_div(filters_, kFilters);
    parallel::parallel_for(s_.groups * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t group = b / blocks;
        const std::int64_t first = b % blocks * kFilters;
        transpose(sums + group * depth * columns_ + first, columns_, depth,
                  std::min(kFilters, filters_ - first), out + (group * filters_ + first) * depth);
      }
    });
  }

  /// to[i][k] = from[k][i], k < rows apart by `stride`.
  static void transpose(const T* from, std::int64_t stride, std::int64_t rows, std::int64_t cols,
                        T* to) {
    constexpr auto kItem = static_cast<std::int64_t>(sizeof(T));
    if (stride == 1) {
      std::copy_n(from, rows, to);
      return;
    }
    active_table().stage[sizeof(T) == 4 ? 2 : 3].transpose(reinterpret_cast<char*>(to),
                                                           reinterpret_cast<const char*>(from),
                                                           cols, kItem, rows, stride * kItem);
  }

  const ConvGeometry& s_;
  const T* x_;
  const T* g_;
  const ConvKernelsOf& kernels_;
  std::int64_t channels_;
  std::int64_t filters_;
  std::int64_t area_;
  std::int64_t columns_;
  ConvTaps taps_[2];
  std::int64_t height_;  ///< rows of results of a block
  std::int64_t blocks_;  ///< of one image
  EvenSplit runs_;       ///< of the blocks of all images
  EvenSplit parts_;      ///< of a group's channels
  ConvBlock block_;
  std::vector<std::int64_t> distances_;
};

template <class T>
void conv2d_weight(const Call& call) {
  const View& x = call.in[0];
  const View& g = call.in[1];
  const View& out = call.out[0];
  const ConvGeometry s(call.attrs.as<ConvAttrs>(), x, g, out.shape + 2);
  auto* to = static_cast<T*>(out.data);
  if (is_empty(g)) {
    std::fill_n(to, s.filters * (s.channels / s.groups) * s.kernel_height * s.kernel_width, T(0));
    return;
  }
  WeightSums<T>(s, static_cast<const T*>(x.data), static_cast<const T*>(g.data)).run(to);
}

}  // namespace

void conv2d_weight_kernel(const Call& call) {
  if (is_empty(call.out[0])) return;
  call.out[0].dtype == DType::Float32 ? conv2d_weight<float>(call) : conv2d_weight<double>(call);
}

}  // namespace baregrad::kernels

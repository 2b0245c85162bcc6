// The gradient of conv2d towards its filters: sums over all pixels of all images.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/conv/conv_geometry.h"
#include "backends/cpu/irregular/irregular.h"
#include "backends/cpu/walkers/scratch.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

/// C[k][o] = the sum over images and pixels of x[tap k of the pixel] * g[o]. Blocks of rows are
/// added up in order within a few fixed runs of them, then the runs.
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
        taps_{s.taps(0), s.taps(1)} {}

  void run(T* out) {
    const std::int64_t height =
        block_rows(taps_[0], taps_[1],
                   {.height = s_.out_height,
                    .width = s_.out_width,
                    .channels = channels_,
                    .row_bytes = filters_ * s_.out_width * static_cast<std::int64_t>(sizeof(T)),
                    .images = 8,
                    .lanes = 1,
                    .item = sizeof(T)});
    const std::int64_t blocks = (s_.out_height + height - 1) / height;
    const std::int64_t units = s_.images * blocks;
    // A run costs a pass over all filters; a part of the channels, a transposition of g.
    const std::int64_t filter_bytes =
        s_.groups * channels_ * area_ * columns_ * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t pixels = s_.images * s_.out_height * s_.out_width;
    const std::int64_t most_runs = std::min(
        {units, pixels / kPixelsOfRun,
         (kRunBytes + filter_bytes - 1) / std::max<std::int64_t>(filter_bytes, 1), kTasks});
    const EvenSplit runs(units, (units + std::max<std::int64_t>(most_runs, 1) - 1) /
                                    std::max<std::int64_t>(most_runs, 1));
    const std::int64_t wanted = (kTasks + runs.count * s_.groups - 1) / (runs.count * s_.groups);
    // Four channels of nine taps are three whole tiles.
    const std::int64_t each = round_up((channels_ + wanted - 1) / wanted, 4);
    const EvenSplit parts(channels_, std::max<std::int64_t>(each, 16));
    const ConvBlock block(taps_[0], height, taps_[1], s_.out_width);
    const std::vector<std::int64_t> distances = block.distances(parts.least + 1);

    const std::int64_t rows = s_.groups * channels_ * area_;
    Scratch<64> partial(static_cast<std::size_t>(runs.count * rows * columns_) * sizeof(T));
    T* const sums = reinterpret_cast<T*>(partial.data());
    // Where several parts of the channels read the same gradient, it is turned for all of them.
    const bool shared = parts.count > 1;
    const std::int64_t turned = height * s_.out_width * filters_ + kernels_.lanes * 2;
    Scratch<64> common(shared ? static_cast<std::size_t>(units * s_.groups * turned) * sizeof(T)
                              : 0);
    T* const all_turned = reinterpret_cast<T*>(common.data());
    if (shared) {
      parallel::parallel_for(units * s_.groups, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t at = begin; at < end; ++at) {
          const std::int64_t unit = at / s_.groups;
          const std::int64_t row = unit % blocks * height;
          turn(unit / blocks, at % s_.groups, row, std::min(height, s_.out_height - row),
               all_turned + at * turned);
        }
      });
    }
    parallel::parallel_for(
        runs.count * s_.groups * parts.count, 1, [&](std::int64_t begin, std::int64_t end) {
          const std::int64_t staged = (parts.least + 1) * block.channel();
          Scratch<64> scratch(static_cast<std::size_t>(staged + (shared ? 0 : turned)) * sizeof(T));
          T* planes = reinterpret_cast<T*>(scratch.data());
          for (std::int64_t task = begin; task < end; ++task) {
            const std::int64_t part = task % parts.count;
            const std::int64_t group = task / parts.count % s_.groups;
            const std::int64_t run = task / parts.count / s_.groups;
            const std::int64_t first = group * channels_ + parts.begin(part);
            const std::int64_t channels = parts.size(part);
            T* to = sums + (run * rows + first * area_) * columns_;
            for (std::int64_t u = 0; u < runs.size(run); ++u) {
              const std::int64_t unit = runs.begin(run) + u;
              const std::int64_t image = unit / blocks;
              const std::int64_t row = unit % blocks * height;
              const std::int64_t count = std::min(height, s_.out_height - row);
              T* g = shared ? all_turned + (unit * s_.groups + group) * turned : planes + staged;
              stage_block(kernels_, block, {channels, s_.height, s_.width},
                          x_ + (image * s_.channels + first) * s_.height * s_.width, row, planes);
              if (!shared) turn(image, group, row, count, g);
              add(block, distances, channels * area_, planes, g, count, to, u > 0);
            }
          }
        });
    gather(sums, runs.count, rows, out);
  }

 private:
  static constexpr std::int64_t kTasks = 16;
  static constexpr std::int64_t kPixelsOfRun = 512;
  static constexpr std::int64_t kRunBytes = 1 << 24;

  /// to[pixel][o] = g[image, o, pixel], of some rows of the result.
  void turn(std::int64_t image, std::int64_t group, std::int64_t row, std::int64_t count,
            T* to) const {
    const std::int64_t plane = s_.out_height * s_.out_width;
    const std::int64_t pixels = count * s_.out_width;
    const T* from = g_ + (image * s_.filters + group * filters_) * plane + row * s_.out_width;
    if (filters_ == 1 || plane == 1) {
      std::copy_n(from, pixels * filters_, to);
    } else {
      transpose(from, plane, filters_, pixels, to);
    }
    // Vectors read past the last pixel, of which nothing is kept.
    std::fill_n(to + pixels * filters_, kernels_.lanes * 2, T(0));
  }

  void add(const ConvBlock& block, const std::vector<std::int64_t>& distances, std::int64_t rows,
           const T* planes, const T* g, std::int64_t count, T* to, bool add) const {
    if (filters_ == 1) {
      for (std::int64_t k = 0; k < rows; ++k) {
        const T total =
            dot(planes + distances[static_cast<std::size_t>(k)], block.width(), g, count);
        to[k] = add ? to[k] + total : total;
      }
      return;
    }
    const EvenSplit tiles(rows, kernels_.sum_rows);
    for (std::int64_t tile = 0; tile < tiles.count; ++tile) {
      const std::int64_t k = tiles.begin(tile);
      ConvSum sum;
      sum.x = planes;
      sum.at = distances.data() + k;
      sum.x_row = block.width();
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

  /// One filter has no vectors of them: they run along the rows instead.
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
  void gather(T* sums, std::int64_t runs, std::int64_t rows, T* out) const {
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
    const std::int64_t blocks = (filters_ + kFilters - 1) / kFilters;
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

// conv2d's gradient towards images that are hardly larger than their filters, as in a transposed
// convolution with a large filter.
#include <algorithm>

#include "backends/cpu/conv/conv_geometry.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/walkers/scratch.h"
#include "core/integer_math.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

/// Which of `count` places (the first at `start`, then every `step`) lie in [low, high).
struct IndexRange {
  IndexRange(std::int64_t start, std::int64_t step, std::int64_t count, std::int64_t low,
             std::int64_t high)
      : begin(std::clamp<std::int64_t>(ceil_div(low - start, step), 0, count)),
        end(std::clamp<std::int64_t>(ceil_div(high - start, step), begin, count)) {}
  std::int64_t begin;
  std::int64_t end;
};

/// Every pixel times every tap is one product, which is added to the one place where it belongs. A
/// task owns the places that it writes: rows of some channels of some images. Products are added in
/// the order of taps, then pixels.
template <class T>
class ScatterProducts {
 public:
  ScatterProducts(const ConvGeometry& s, const T* g, const T* weight, T* out)
      : s_(s),
        g_(g),
        weight_(weight),
        out_(out),
        channels_(s.channels / s.groups),
        filters_(s.filters / s.groups),
        area_(s.kernel_height * s.kernel_width),
        pixels_(s.out_height * s.out_width),
        along_taps_(s.kernel_width >= s.out_width),
        images_(EvenSplit::of_at_most(s.images, std::max<std::int64_t>(1, kColumns / pixels_))),
        panel_(std::clamp<std::int64_t>(kProducts / most_columns(), 1, channels_ * area_)),
        bands_(EvenSplit::of_at_most(s.height, band_height())),
        parts_(EvenSplit::of_at_most(
            channels_, bands_.count > 1 ? 1 : std::max<std::int64_t>(1, panel_ / area_))) {}

  void run() const {
    const std::int64_t work =
        parts_.largest() * area_ / bands_.count * most_columns() * (filters_ + kAddCost);
    const std::int64_t grain = std::max<std::int64_t>(1, (std::int64_t{1} << 18) / (work + 1));
    const std::int64_t tasks = images_.count * s_.groups * parts_.count * bands_.count;
    parallel::parallel_for(tasks, grain, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t products = panel_ * most_columns();
      const std::int64_t staged = most_images() > 1 ? filters_ * most_columns() : 0;
      Scratch<64> scratch(static_cast<std::size_t>(products + staged) * sizeof(T));
      T* const room = reinterpret_cast<T*>(scratch.data());
      for (std::int64_t task = begin; task < end; ++task) fill(Part(*this, task), room);
    });
  }

 private:
  /// Products that are computed at a time: they stay in L2 until they are added.
  static constexpr std::int64_t kProducts = 1 << 14;
  /// Small images share a product of matrices, up to this many columns.
  static constexpr std::int64_t kColumns = 64;
  /// Adding a product takes as long as this many terms of it.
  static constexpr std::int64_t kAddCost = 8;

  /// What a task writes and multiplies.
  struct Part {
    Part(const ScatterProducts& of, std::int64_t task) {
      const std::int64_t band = task % of.bands_.count;
      task /= of.bands_.count;
      const std::int64_t part = task % of.parts_.count;
      task /= of.parts_.count;
      low = of.bands_.begin(band);
      high = low + of.bands_.size(band);
      channel = of.parts_.begin(part);
      channels = of.parts_.size(part);
      group = task % of.s_.groups;
      image = of.images_.begin(task / of.s_.groups);
      images = of.images_.size(task / of.s_.groups);
    }
    std::int64_t image, images;
    std::int64_t group;
    std::int64_t channel, channels;  ///< of the group
    std::int64_t low, high;          ///< rows
  };

  std::int64_t most_images() const { return images_.largest(); }
  std::int64_t most_columns() const { return most_images() * pixels_; }

  /// Rows of taps that reach into two bands are multiplied twice, so bands are several times as
  /// high as the reach of one tap.
  std::int64_t band_height() const {
    constexpr std::int64_t kTasks = 8;
    const std::int64_t planes = images_.count * s_.channels;
    const std::int64_t bands = ceil_div(kTasks, planes);
    const std::int64_t reach = (s_.out_height - 1) * s_.stride[0] + 1;
    return std::max(ceil_div(s_.height, bands), 4 * reach);
  }

  void fill(const Part& part, T* room) const {
    for (std::int64_t i = 0; i < part.images; ++i) {
      for (std::int64_t c = 0; c < part.channels; ++c) {
        T* const to = plane(part, i, part.channel + c);
        std::fill(to + part.low * s_.width, to + part.high * s_.width, T(0));
      }
    }
    T* const staged = room + panel_ * most_columns();
    const T* const columns = part.images > 1 ? stage(part, staged) : image_of(part, 0);
    // Rows of taps that reach into the band: a column of pixels extends each this far down.
    const std::int64_t span = (s_.out_height - 1) * s_.stride[0];
    const IndexRange rows(-s_.padding[0], s_.dilation[0], s_.kernel_height, part.low - span,
                          part.high);
    const std::int64_t begin = part.channel * area_ + rows.begin * s_.kernel_width;
    const std::int64_t end =
        (part.channel + part.channels - 1) * area_ + rows.end * s_.kernel_width;
    for (std::int64_t tap = begin; tap < end; tap += panel_) {
      const std::int64_t taps = std::min(panel_, end - tap);
      multiply(part, columns, tap, taps, room);
      add_panel(part, tap, taps, room);
    }
  }

  T* plane(const Part& part, std::int64_t image, std::int64_t channel) const {
    const std::int64_t at = (part.image + image) * s_.channels + part.group * channels_ + channel;
    return out_ + at * s_.height * s_.width;
  }
  const T* image_of(const Part& part, std::int64_t image) const {
    return g_ + ((part.image + image) * s_.filters + part.group * filters_) * pixels_;
  }

  /// to[filter][image][pixel]
  const T* stage(const Part& part, T* to) const {
    for (std::int64_t i = 0; i < part.images; ++i) {
      const T* from = image_of(part, i);
      for (std::int64_t o = 0; o < filters_; ++o) {
        std::copy_n(from + o * pixels_, pixels_, to + (o * part.images + i) * pixels_);
      }
    }
    return to;
  }

  /// products[tap][image][pixel], or with taps last: sums over the filters. The taps of all
  /// channels of a group are contiguous.
  void multiply(const Part& part, const T* columns, std::int64_t tap, std::int64_t taps,
                T* products) const {
    const std::int64_t depth = channels_ * area_;
    GemmCall call;
    call.dtype = sizeof(T) == sizeof(float) ? DType::Float32 : DType::Float64;
    call.m = taps;
    call.n = part.images * pixels_;
    call.k = filters_;
    call.a = {weight_ + part.group * filters_ * depth + tap, 1, depth};
    call.b = {columns, call.n, 1};
    call.c = products;
    call.c_row_stride = along_taps_ ? 1 : call.n;
    call.c_col_stride = along_taps_ ? taps : 1;
    gemm(call);
  }

  void add_panel(const Part& part, std::int64_t first, std::int64_t taps, const T* products) const {
    const std::int64_t columns = part.images * pixels_;
    for (std::int64_t done = 0; done < taps;) {
      const std::int64_t channel = (first + done) / area_;
      const std::int64_t row = (first + done) % area_ / s_.kernel_width;
      const std::int64_t col = (first + done) % s_.kernel_width;
      const std::int64_t count = std::min(s_.kernel_width - col, taps - done);
      const std::int64_t start = row * s_.dilation[0] - s_.padding[0];
      const IndexRange rows(start, s_.stride[0], s_.out_height, part.low, part.high);
      for (std::int64_t i = 0; i < part.images; ++i) {
        T* const to = plane(part, i, channel);
        for (std::int64_t y = rows.begin; y < rows.end; ++y) {
          T* const line = to + (start + y * s_.stride[0]) * s_.width;
          const std::int64_t pixel = i * pixels_ + y * s_.out_width;
          if (along_taps_) {
            add_taps(products + pixel * taps + done, taps, col, count, line);
          } else {
            add_pixels(products + done * columns + pixel, columns, col, count, line);
          }
        }
      }
      done += count;
    }
  }

  /// A row of pixels, each with `count` taps from `col` on.
  void add_taps(const T* products, std::int64_t stride, std::int64_t col, std::int64_t count,
                T* line) const {
    for (std::int64_t x = 0; x < s_.out_width; ++x, products += stride) {
      add(products, count, x * s_.stride[1] + col * s_.dilation[1] - s_.padding[1], s_.dilation[1],
          line);
    }
  }
  /// `count` taps from `col` on, each with a row of pixels.
  void add_pixels(const T* products, std::int64_t stride, std::int64_t col, std::int64_t count,
                  T* line) const {
    for (std::int64_t k = col; k < col + count; ++k, products += stride) {
      add(products, s_.out_width, k * s_.dilation[1] - s_.padding[1], s_.stride[1], line);
    }
  }
  void add(const T* from, std::int64_t count, std::int64_t start, std::int64_t step,
           T* line) const {
    const IndexRange cols(start, step, count, 0, s_.width);
    if (cols.begin == cols.end) return;
    if (step == 1) {
      T* const to = line + (start + cols.begin);
      from += cols.begin;
      for (std::int64_t i = 0; i < cols.end - cols.begin; ++i) to[i] += from[i];
    } else {
      for (std::int64_t i = cols.begin; i < cols.end; ++i) line[start + i * step] += from[i];
    }
  }

  const ConvGeometry& s_;
  const T* g_;
  const T* weight_;
  T* out_;
  std::int64_t channels_;
  std::int64_t filters_;
  std::int64_t area_;
  std::int64_t pixels_;
  bool along_taps_;  ///< rows of taps are longer than rows of pixels
  EvenSplit images_;
  std::int64_t panel_;  ///< taps multiplied at once
  EvenSplit bands_;     ///< of rows
  EvenSplit parts_;     ///< of a group's channels
};

}  // namespace

bool suits_scatter(const ConvGeometry& s) {
  // Measured, in multiplications of a correlation: the overhead of one phase of the stride, the
  // cost of adding a product, and how much more expensive all of that is than a correlation.
  constexpr double kPhase = 2000;
  constexpr double kAdd = 4;
  constexpr double kScatter = 2.5;
  const std::int64_t size[] = {s.height, s.width};
  const auto channels = static_cast<double>(s.images * s.channels);
  const std::int64_t group_filters = s.filters / s.groups;
  const auto filters = static_cast<double>(group_filters);
  double correlated = channels * filters;
  double phases = 1;
  for (int axis = 0; axis < 2; ++axis) {
    correlated *= static_cast<double>(s.kernel(axis)) *
                  static_cast<double>(ceil_div(size[axis], s.stride[axis]));
    phases *= static_cast<double>(std::min(s.stride[axis], s.kernel(axis)));
  }
  double products = channels;
  for (const std::int64_t factor : {s.out_height, s.out_width, s.kernel_height, s.kernel_width}) {
    products *= static_cast<double>(factor);
  }
  return correlated + kPhase * phases > kScatter * products * (filters + kAdd) && products > 0;
}

template <class T>
void scatter_products(const ConvGeometry& s, const T* g, const T* weight, T* out) {
  ScatterProducts<T>(s, g, weight, out).run();
}
template void scatter_products(const ConvGeometry&, const float*, const float*, float*);
template void scatter_products(const ConvGeometry&, const double*, const double*, double*);

}  // namespace baregrad::kernels

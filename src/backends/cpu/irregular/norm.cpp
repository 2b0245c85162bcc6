// Layer, RMS and batch normalisation: how rows are split among threads, and the order of their
// sums.
#include "backends/cpu/irregular/norm.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "backends/cpu/irregular/irregular.h"
#include "backends/cpu/table.h"
#include "backends/cpu/walkers/scratch.h"
#include "core/integer_math.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

// Elements of one parallel chunk.
constexpr std::int64_t kNormGrain = 16384;
// Rows whose contributions to dweight and dbias are added in the compute type; then in double.
constexpr std::int64_t kStretch = 64;
// The most partial sums of the parameters' gradients, and the fewest rows of each.
constexpr std::int64_t kMaxPartials = 32;
constexpr std::int64_t kMinPartialRows = 16;
// Columns of a block, where each image has one element per channel.
constexpr std::int64_t kColumns = 256;

char* moved(void* base, std::int64_t elements, std::int64_t width) {
  return base == nullptr ? nullptr : static_cast<char*>(base) + elements * width;
}

/// x as rows x n, split at the first normalised axis.
struct RowShape {
  std::int64_t rows = 1;
  std::int64_t n = 1;
  std::int64_t width;

  RowShape(const View& x, int axis) : width(static_cast<std::int64_t>(itemsize(x.dtype))) {
    for (int i = 0; i < x.ndim; ++i) (i < axis ? rows : n) *= x.shape[i];
  }
  std::int64_t grain() const { return std::max<std::int64_t>(1, kNormGrain / n); }
};

void normalise_rows(const Call& call, bool centred) {
  const View& x = call.in[0];
  const RowShape shape(x, call.attrs.as<NormAttrs>().axis);
  if (shape.rows * shape.n == 0) return;
  const NormFns& fns = active_table().norm->of(x.dtype);
  const void* weight = call.in.size() > 1 ? call.in[1].data : nullptr;
  const void* bias = call.in.size() > 2 ? call.in[2].data : nullptr;
  const double eps = call.attrs.as<NormAttrs>().eps;
  const std::int64_t n = shape.n;
  const std::int64_t width = shape.width;
  parallel::parallel_for(shape.rows, shape.grain(), [&](std::int64_t begin, std::int64_t end) {
    const void* from = moved(x.data, begin * n, width);
    void* to = moved(call.out[0].data, begin * n, width);
    void* stats = moved(call.out[1].data, begin * (centred ? 2 : 1), width);
    if (centred) {
      fns.layer(from, end - begin, n, weight, bias, eps, to, stats);
    } else {
      fns.rms(from, end - begin, n, weight, eps, to, stats);
    }
  });
}

template <class T>
void add_to(double* sums, const T* part, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sums[i] += static_cast<double>(part[i]);
}

/// Rows begin..end: dx, and their contribution to the parameters' gradients, added to 2 n doubles.
template <class T>
void backward_stretch(const Call& call, bool centred, const RowShape& shape, std::int64_t begin,
                      std::int64_t end, T* part, double* sums) {
  const NormFns& fns = active_table().norm->of(call.in[1].dtype);
  const auto run = centred ? fns.layer_backward : fns.rms_backward;
  const std::int64_t n = shape.n;
  const std::int64_t width = shape.width;
  const void* weight = call.in.size() > 3 ? call.in[3].data : nullptr;
  const bool wants_dx = (call.attrs.as<NormAttrs>().wanted & kWantX) != 0;
  for (std::int64_t r = begin; r < end; r += kStretch) {
    const std::int64_t rows = std::min(kStretch, end - r);
    if (sums != nullptr) std::fill_n(part, 2 * n, T{0});
    run(moved(call.in[0].data, r * n, width), moved(call.in[1].data, r * n, width),
        moved(call.in[2].data, r * (centred ? 2 : 1), width), weight, rows, n,
        wants_dx ? moved(call.out[0].data, r * n, width) : nullptr,
        sums != nullptr ? part : nullptr, sums != nullptr ? part + n : nullptr);
    if (sums != nullptr) add_to(sums, part, 2 * n);
  }
}

template <class T>
void normalise_rows_backward_of(const Call& call, bool centred) {
  const RowShape shape(call.in[1], call.attrs.as<NormAttrs>().axis);
  const std::int64_t n = shape.n;
  const bool parameters = (call.attrs.as<NormAttrs>().wanted & (kWantWeight | kWantBias)) != 0;
  if (!parameters) {
    if (shape.rows * n == 0) return;
    parallel::parallel_for(shape.rows, shape.grain(), [&](std::int64_t begin, std::int64_t end) {
      backward_stretch<T>(call, centred, shape, begin, end, nullptr, nullptr);
    });
    return;
  }
  if (n == 0) return;
  const std::int64_t block = std::max(kMinPartialRows, ceil_div(shape.rows, kMaxPartials));
  const std::int64_t blocks = std::max<std::int64_t>(1, ceil_div(shape.rows, block));
  const std::int64_t each = 2 * n;
  Scratch<4096> memory(static_cast<std::size_t>(blocks * each) * (sizeof(double) + sizeof(T)));
  auto* const sums = reinterpret_cast<double*>(memory.data());
  auto* const parts = reinterpret_cast<T*>(sums + blocks * each);
  std::fill_n(sums, blocks * each, 0.0);
  parallel::parallel_for(blocks, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t b = first; b < last; ++b) {
      backward_stretch<T>(call, centred, shape, b * block, std::min(shape.rows, (b + 1) * block),
                          parts + b * each, sums + b * each);
    }
  });
  for (std::int64_t b = 1; b < blocks; ++b) add_to(sums, sums + b * each, each);
  for (int k = 0; k < 2; ++k) {
    if ((call.attrs.as<NormAttrs>().wanted >> (k + 1) & 1) == 0) continue;
    T* out = static_cast<T*>(call.out[static_cast<std::size_t>(k) + 1].data);
    for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(sums[k * n + i]);
  }
}

void normalise_rows_backward(const Call& call, bool centred) {
  if (call.in[1].dtype == DType::Float64) {
    normalise_rows_backward_of<double>(call, centred);
  } else {
    normalise_rows_backward_of<float>(call, centred);
  }
}

/// x [N, C, ...]: N images of C channels, each a run.
struct ChannelShape {
  std::int64_t images;
  std::int64_t channels;
  std::int64_t run = 1;

  explicit ChannelShape(const View& x) : images(x.shape[0]), channels(x.shape[1]) {
    for (int i = 2; i < x.ndim; ++i) run *= x.shape[i];
  }
  std::int64_t count() const { return images * run; }
  /// Channels of a chunk that covers all images.
  std::int64_t channel_grain() const {
    return std::max<std::int64_t>(1, kNormGrain / std::max<std::int64_t>(1, count()));
  }
};

/// sums[c] = the reduction over all images of channel c, in double.
void reduce_channels(OpId op, const View& x, const ChannelShape& shape, const double* shift,
                     double* sums) {
  const ReduceKernel& kernel =
      active_table().reduce[static_cast<int>(op)][static_cast<int>(x.dtype)];
  const auto width = static_cast<std::int64_t>(itemsize(x.dtype));
  kernel.init(sums, shape.channels);
  if (shape.run == 1) {
    parallel::parallel_for(shape.channels, kColumns, [&](std::int64_t begin, std::int64_t end) {
      kernel.outer(moved(x.data, begin, width), shape.images, shape.channels, end - begin,
                   sums + begin, shift == nullptr ? nullptr : shift + begin);
    });
    return;
  }
  parallel::parallel_for(
      shape.channels, shape.channel_grain(), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t image = 0; image < shape.images; ++image) {
          kernel.inner(moved(x.data, (image * shape.channels + begin) * shape.run, width),
                       end - begin, shape.run, shape.run, sums + begin,
                       shift == nullptr ? nullptr : shift + begin);
        }
      });
}

/// f(first, rows, n, channel, per_row) over blocks that cover x: `rows` runs of n elements from
/// element `first` on, whose channels begin with `channel`.
template <class F>
void for_channel_rows(const ChannelShape& shape, const F& f) {
  if (shape.run == 1) {
    const std::int64_t grain = std::max<std::int64_t>(1, kNormGrain / shape.channels);
    parallel::parallel_for(shape.images, grain, [&](std::int64_t begin, std::int64_t end) {
      f(begin * shape.channels, end - begin, shape.channels, 0, false);
    });
    return;
  }
  const std::int64_t grain = std::max<std::int64_t>(1, kNormGrain / shape.run);
  parallel::parallel_for(
      shape.images * shape.channels, grain, [&](std::int64_t begin, std::int64_t end) {
        while (begin < end) {
          const std::int64_t channel = begin % shape.channels;
          const std::int64_t rows = std::min(end - begin, shape.channels - channel);
          f(begin * shape.run, rows, shape.run, channel, true);
          begin += rows;
        }
      });
}

template <class T>
void batch_norm_of(const Call& call) {
  const View& x = call.in[0];
  const ChannelShape shape(x);
  const std::int64_t channels = shape.channels;
  const T* weight = static_cast<const T*>(call.in[1].data);
  const T* bias = static_cast<const T*>(call.in[2].data);
  T* const mean = static_cast<T*>(call.out[1].data);
  T* const rstd = mean + channels;
  T* const var = rstd + channels;
  const bool training = call.in.size() == 3;
  const double eps = call.attrs.as<BatchNormAttrs>().eps;
  Scratch<4096> memory(static_cast<std::size_t>(channels) * 2 * (sizeof(double) + sizeof(T)));
  auto* const means = reinterpret_cast<double*>(memory.data());
  auto* const vars = means + channels;
  T* const scale = reinterpret_cast<T*>(vars + channels);
  T* const shift = scale + channels;
  if (training) {
    const auto count = static_cast<double>(shape.count());
    // float64: relative to the first elements, so that means of equal elements are exact. For
    // float32 they are exact anyway, since its sums are in float64.
    constexpr bool kShift = std::is_same_v<T, double>;
    for (std::int64_t c = 0; c < channels; ++c) {
      vars[c] = kShift ? static_cast<double>(static_cast<const T*>(x.data)[c * shape.run]) : 0.0;
    }
    reduce_channels(kShift ? OpId::mean : OpId::sum, x, shape, kShift ? vars : nullptr, means);
    for (std::int64_t c = 0; c < channels; ++c) means[c] = vars[c] + means[c] / count;
    reduce_channels(OpId::var, x, shape, means, vars);
    for (std::int64_t c = 0; c < channels; ++c) vars[c] /= count;
  } else {
    for (std::int64_t c = 0; c < channels; ++c) {
      means[c] = static_cast<double>(static_cast<const T*>(call.in[3].data)[c]);
      vars[c] = static_cast<double>(static_cast<const T*>(call.in[4].data)[c]);
    }
  }
  for (std::int64_t c = 0; c < channels; ++c) {
    const double r = 1 / std::sqrt(vars[c] + eps);
    mean[c] = static_cast<T>(means[c]);
    rstd[c] = static_cast<T>(r);
    var[c] = static_cast<T>(vars[c]);
    const double slope = r * static_cast<double>(weight[c]);
    scale[c] = static_cast<T>(slope);
    // The rounding error of the mean in T is corrected in the shift.
    const double lost = means[c] - static_cast<double>(mean[c]);
    shift[c] = static_cast<T>(static_cast<double>(bias[c]) - lost * slope);
  }
  const NormFns& fns = active_table().norm->of(x.dtype);
  for_channel_rows(shape, [&](std::int64_t first, std::int64_t rows, std::int64_t n,
                              std::int64_t channel, bool per_row) {
    fns.affine(static_cast<const T*>(x.data) + first, rows, n, mean + channel, scale + channel,
               shift + channel, per_row, static_cast<T*>(call.out[0].data) + first);
  });
}

/// sums[c] and sums[channels + c]: of g and of g (x - mean) in channel c.
template <class T>
void channel_sums(const T* g, const T* x, const ChannelShape& shape, const T* mean, double* sums) {
  const NormFns& fns = active_table().norm->of(dtype_of<T>);
  const std::int64_t channels = shape.channels;
  std::fill_n(sums, 2 * channels, 0.0);
  if (shape.count() == 0) return;
  if (shape.run == 1) {
    parallel::parallel_for(channels, kColumns, [&](std::int64_t begin, std::int64_t end) {
      double block[2 * kColumns] = {};
      const std::int64_t n = end - begin;
      fns.column_sums(g + begin, x + begin, shape.images, channels, n, mean + begin, block);
      std::copy_n(block, n, sums + begin);
      std::copy_n(block + n, n, sums + channels + begin);
    });
    return;
  }
  parallel::parallel_for(
      channels, shape.channel_grain(), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t c = begin; c < end; ++c) {
          double both[2] = {0, 0};
          for (std::int64_t image = 0; image < shape.images; ++image) {
            const std::int64_t at = (image * channels + c) * shape.run;
            fns.run_sums(g + at, x + at, shape.run, static_cast<double>(mean[c]), both);
          }
          sums[c] = both[0];
          sums[channels + c] = both[1];
        }
      });
}

template <class T>
void batch_norm_backward_of(const Call& call) {
  const T* g = static_cast<const T*>(call.in[0].data);
  const T* x = static_cast<const T*>(call.in[1].data);
  const ChannelShape shape(call.in[1]);
  const std::int64_t channels = shape.channels;
  const T* const mean = static_cast<const T*>(call.in[2].data);
  const T* const rstd = mean + channels;
  const T* const weight = static_cast<const T*>(call.in[3].data);
  const bool training = call.attrs.as<BatchNormAttrs>().training;
  const int wanted = call.attrs.as<BatchNormAttrs>().wanted;
  Scratch<4096> memory(static_cast<std::size_t>(channels) * (2 * sizeof(double) + 3 * sizeof(T)));
  auto* const sums = reinterpret_cast<double*>(memory.data());
  T* const a = reinterpret_cast<T*>(sums + 2 * channels);
  T* const b = a + channels;
  T* const c = b + channels;
  if (training || (wanted & 6) != 0) channel_sums(g, x, shape, mean, sums);
  for (std::int64_t i = 0; i < channels; ++i) {
    if ((wanted & 2) != 0) {
      static_cast<T*>(call.out[1].data)[i] =
          static_cast<T>(sums[channels + i] * static_cast<double>(rstd[i]));
    }
    if ((wanted & 4) != 0) static_cast<T*>(call.out[2].data)[i] = static_cast<T>(sums[i]);
  }
  if ((wanted & 1) == 0 || shape.count() * channels == 0) return;
  const auto count = static_cast<double>(shape.count());
  for (std::int64_t i = 0; i < channels; ++i) {
    const auto r = static_cast<double>(rstd[i]);
    const double slope = static_cast<double>(weight[i]) * r;
    a[i] = static_cast<T>(slope);
    b[i] = training ? static_cast<T>(-slope * r * r * sums[channels + i] / count) : T{0};
    c[i] = training ? static_cast<T>(-slope * sums[i] / count) : T{0};
  }
  const NormFns& fns = active_table().norm->of(call.in[1].dtype);
  T* const dx = static_cast<T*>(call.out[0].data);
  for_channel_rows(shape, [&](std::int64_t first, std::int64_t rows, std::int64_t n,
                              std::int64_t channel, bool per_row) {
    if (training) {
      fns.affine_backward(g + first, x + first, rows, n, a + channel, b + channel, c + channel,
                          mean + channel, per_row, dx + first);
    } else {
      fns.affine(g + first, rows, n, c + channel, a + channel, c + channel, per_row, dx + first);
    }
  });
}

}  // namespace

void layer_norm_kernel(const Call& call) { normalise_rows(call, true); }
void layer_norm_backward_kernel(const Call& call) { normalise_rows_backward(call, true); }
void rms_norm_kernel(const Call& call) { normalise_rows(call, false); }
void rms_norm_backward_kernel(const Call& call) { normalise_rows_backward(call, false); }

void batch_norm_kernel(const Call& call) {
  if (numel(call.in[0]) == 0) {
    // There are no statistics without elements: zeros, which give gradients of zero for the
    // parameters.
    std::fill_n(static_cast<char*>(call.out[1].data),
                numel(call.out[1]) * static_cast<std::int64_t>(itemsize(call.out[1].dtype)), 0);
    return;
  }
  if (call.in[0].dtype == DType::Float64) {
    batch_norm_of<double>(call);
  } else {
    batch_norm_of<float>(call);
  }
}

void batch_norm_backward_kernel(const Call& call) {
  if (call.in[1].dtype == DType::Float64) {
    batch_norm_backward_of<double>(call);
  } else {
    batch_norm_backward_of<float>(call);
  }
}

}  // namespace baregrad::kernels

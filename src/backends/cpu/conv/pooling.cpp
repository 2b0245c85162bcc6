// Pooling, one plane at a time: a row of windows, tap by tap, so that the inner loop runs along it.
#include <algorithm>
#include <limits>
#include <vector>

#include "backends/cpu/irregular/irregular.h"
#include "backends/cpu/walkers/scratch.h"
#include "core/integer_math.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

/// One axis of an image of `size` pixels: window i covers pixels begin(i) to end(i).
struct Windows {
  Windows(const PoolAttrs& attrs, int axis, std::int64_t image, std::int64_t windows)
      : size(image),
        count(windows),
        // A longer step leaves the image at once, so there is no second window.
        stride(std::clamp<std::int64_t>(
            attrs.stride[axis], 1, std::max<std::int64_t>(1, image + 2 * attrs.padding[axis]))),
        padding(attrs.padding[axis]),
        // No window reaches further.
        kernel(std::min(attrs.kernel[axis], image + 2 * attrs.padding[axis])) {}

  std::int64_t size, count, stride, padding, kernel;

  std::int64_t start(std::int64_t i) const { return i * stride - padding; }
  std::int64_t begin(std::int64_t i) const { return std::max<std::int64_t>(start(i), 0); }
  std::int64_t end(std::int64_t i) const { return std::min(start(i) + kernel, size); }
  /// The number of pixels in the average of window i; those after the border never count.
  std::int64_t covered(std::int64_t i, bool border) const {
    return border ? std::min(start(i) + kernel, size + padding) - start(i) : end(i) - begin(i);
  }
  /// Taps that lie on a pixel in any window: from first_tap() to end_tap(). A border may be huge.
  std::int64_t first_tap() const {
    return count == 0 ? 0 : std::max<std::int64_t>(0, -start(count - 1));
  }
  std::int64_t end_tap() const { return std::min(kernel, padding + size); }
  /// Windows whose tap k lies on a pixel: from first(k) to last(k).
  std::int64_t first(std::int64_t k) const {
    return k >= padding ? 0 : std::min(count, ceil_div(padding - k, stride));
  }
  std::int64_t last(std::int64_t k) const {
    const std::int64_t room = size - 1 + padding - k;
    return room < 0 ? 0 : std::min(count, room / stride + 1);
  }
};

/// Images and results of a call; planes are distributed to threads.
struct Pooling {
  Pooling(const PoolAttrs& attrs, const View& image, const View& result)
      : planes(image.shape[0] * image.shape[1]),
        rows(attrs, 0, image.shape[2], result.shape[2]),
        cols(attrs, 1, image.shape[3], result.shape[3]),
        border(attrs.count_include_pad) {}

  std::int64_t planes;
  Windows rows;
  Windows cols;
  bool border;

  std::int64_t image() const { return rows.size * cols.size; }
  std::int64_t result() const { return rows.count * cols.count; }
  template <class Body>
  void for_planes(const Body& body) const {
    if (planes == 0) return;
    const std::int64_t work = image() + result();
    parallel::parallel_for(planes, std::max<std::int64_t>(1, (1 << 15) / work), body);
  }
};

/// The maximum so far of each window of a row, and its position: NaN wins; of equals, the first.
template <class T, class Index>
void max_taps(const T* __restrict x, std::int64_t stride, Index at, std::int64_t n,
              T* __restrict best, Index* __restrict where) {
  const auto step = static_cast<Index>(stride);
  const auto run = [&](auto fixed) {
    for (std::int64_t i = 0; i < n; ++i) {
      const T v = x[i * fixed];
      const bool take = (v > best[i]) | (v != v);
      best[i] = take ? v : best[i];
      where[i] = take ? static_cast<Index>(at + static_cast<Index>(i) * step) : where[i];
    }
  };
  if (stride == 1) {
    run(std::integral_constant<std::int64_t, 1>{});
  } else if (stride == 2) {
    run(std::integral_constant<std::int64_t, 2>{});
  } else {
    run(stride);
  }
}

template <class T, class Index>
void max_pool(const Pooling& p, const T* x, T* out, std::int64_t* positions) {
  const std::int64_t cols = p.cols.count;
  p.for_planes([&](std::int64_t begin, std::int64_t end) {
    Scratch<2048> scratch(static_cast<std::size_t>(cols) * sizeof(Index));
    auto* where = reinterpret_cast<Index*>(scratch.data());
    for (std::int64_t plane = begin; plane < end; ++plane) {
      const T* image = x + plane * p.image();
      for (std::int64_t r = 0; r < p.rows.count; ++r) {
        T* best = out + plane * p.result() + r * cols;
        const std::int64_t top = p.rows.begin(r);
        std::fill_n(best, cols, -std::numeric_limits<T>::infinity());
        for (std::int64_t c = 0; c < cols; ++c) {
          where[c] = static_cast<Index>(top * p.cols.size + p.cols.begin(c));
        }
        for (std::int64_t y = top; y < p.rows.end(r); ++y) {
          for (std::int64_t k = p.cols.first_tap(); k < p.cols.end_tap(); ++k) {
            const std::int64_t first = p.cols.first(k);
            const std::int64_t last = p.cols.last(k);
            if (first >= last) continue;
            const std::int64_t at = y * p.cols.size + p.cols.start(first) + k;
            max_taps<T, Index>(image + at, p.cols.stride, static_cast<Index>(at), last - first,
                               best + first, where + first);
          }
        }
        if (positions == nullptr) continue;
        std::copy_n(where, cols, positions + plane * p.result() + r * cols);
      }
    }
  });
}

template <class T>
void avg_pool(const Pooling& p, const T* x, T* out) {
  const std::int64_t cols = p.cols.count;
  p.for_planes([&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t plane = begin; plane < end; ++plane) {
      for (std::int64_t r = 0; r < p.rows.count; ++r) {
        T* sums = out + plane * p.result() + r * cols;
        std::fill_n(sums, cols, T(0));
        for (std::int64_t y = p.rows.begin(r); y < p.rows.end(r); ++y) {
          for (std::int64_t k = p.cols.first_tap(); k < p.cols.end_tap(); ++k) {
            const std::int64_t first = p.cols.first(k);
            const std::int64_t last = p.cols.last(k);
            if (first >= last) continue;
            const T* from = x + plane * p.image() + y * p.cols.size + p.cols.start(first) + k;
            for (std::int64_t c = first; c < last; ++c, from += p.cols.stride) sums[c] += *from;
          }
        }
        const std::int64_t height = p.rows.covered(r, p.border);
        for (std::int64_t c = 0; c < cols; ++c) {
          sums[c] /= static_cast<T>(height * p.cols.covered(c, p.border));
        }
      }
    }
  });
}

template <class T>
void avg_pool_backward(const Pooling& p, const T* g, T* out) {
  const std::int64_t cols = p.cols.count;
  p.for_planes([&](std::int64_t begin, std::int64_t end) {
    Scratch<2048> scratch(static_cast<std::size_t>(cols) * sizeof(T));
    auto* share = reinterpret_cast<T*>(scratch.data());
    for (std::int64_t plane = begin; plane < end; ++plane) {
      std::fill_n(out + plane * p.image(), p.image(), T(0));
      for (std::int64_t r = 0; r < p.rows.count; ++r) {
        const T* from = g + plane * p.result() + r * cols;
        const std::int64_t height = p.rows.covered(r, p.border);
        for (std::int64_t c = 0; c < cols; ++c) {
          share[c] = from[c] / static_cast<T>(height * p.cols.covered(c, p.border));
        }
        for (std::int64_t y = p.rows.begin(r); y < p.rows.end(r); ++y) {
          for (std::int64_t k = p.cols.first_tap(); k < p.cols.end_tap(); ++k) {
            const std::int64_t first = p.cols.first(k);
            const std::int64_t last = p.cols.last(k);
            if (first >= last) continue;
            T* to = out + plane * p.image() + y * p.cols.size + p.cols.start(first) + k;
            for (std::int64_t c = first; c < last; ++c, to += p.cols.stride) *to += share[c];
          }
        }
      }
    }
  });
}

/// Calls f with a null pointer of the call's element type.
template <class F>
void with_type(const View& view, const F& f) {
  if (view.dtype == DType::Float32) {
    f(static_cast<float*>(nullptr));
  } else {
    f(static_cast<double*>(nullptr));
  }
}

}  // namespace

void max_pool2d_kernel(const Call& call) {
  const View& x = call.in[0];
  const View& out = call.out[0];
  const auto& attrs = call.attrs.as<PoolAttrs>();
  const Pooling p(attrs, x, out);
  auto* positions = attrs.positions ? static_cast<std::int64_t*>(call.out[1].data) : nullptr;
  const bool small = p.image() <= std::numeric_limits<std::int32_t>::max();
  if (x.dtype == DType::Float64) {
    max_pool<double, std::int64_t>(p, static_cast<const double*>(x.data),
                                   static_cast<double*>(out.data), positions);
  } else if (small) {
    max_pool<float, std::int32_t>(p, static_cast<const float*>(x.data),
                                  static_cast<float*>(out.data), positions);
  } else {
    max_pool<float, std::int64_t>(p, static_cast<const float*>(x.data),
                                  static_cast<float*>(out.data), positions);
  }
}

void avg_pool2d_kernel(const Call& call) {
  const Pooling p(call.attrs.as<PoolAttrs>(), call.in[0], call.out[0]);
  with_type(call.in[0], [&]<class T>(T*) {
    avg_pool<T>(p, static_cast<const T*>(call.in[0].data), static_cast<T*>(call.out[0].data));
  });
}

void avg_pool2d_backward_kernel(const Call& call) {
  const Pooling p(call.attrs.as<PoolAttrs>(), call.out[0], call.in[0]);
  with_type(call.in[0], [&]<class T>(T*) {
    avg_pool_backward<T>(p, static_cast<const T*>(call.in[0].data),
                         static_cast<T*>(call.out[0].data));
  });
}

}  // namespace baregrad::kernels

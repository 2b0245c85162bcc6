// Normalisation and cross-entropy, written out in double. Also the float64 kernels of every ISA.
#include "backends/cpu/irregular/norm.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/reference/reference.h"

namespace baregrad::kernels {

namespace {

/// Sum of f(0), ..., f(n - 1) in blocks, so that the error does not grow with n.
template <class F>
double sum_of(std::int64_t n, const F& f) {
  constexpr std::int64_t kBlock = 256;
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t end = std::min(n, begin + kBlock);
    double part = 0;
    for (std::int64_t i = begin; i < end; ++i) part += f(i);
    total += part;
  }
  return total;
}

template <class T>
double at(const T* p, std::int64_t i) {
  return static_cast<double>(p[i]);
}
template <class T>
double at_or(const T* p, std::int64_t i, double otherwise) {
  return p == nullptr ? otherwise : static_cast<double>(p[i]);
}

/// Relative to the first element, so that the mean of equal elements is exact.
template <class T>
double mean_of(const T* x, std::int64_t n) {
  const auto count = static_cast<double>(n);
  const double first = at(x, 0);
  const double mean = first + sum_of(n, [&](std::int64_t i) { return at(x, i) - first; }) / count;
  if (std::isfinite(mean)) return mean;
  return sum_of(n, [&](std::int64_t i) { return at(x, i); }) / count;
}

template <class T>
void layer(const void* x_in, std::int64_t rows, std::int64_t n, const void* weight_in,
           const void* bias_in, double eps, void* y_out, void* stats_out) {
  const T* x = static_cast<const T*>(x_in);
  const T* weight = static_cast<const T*>(weight_in);
  const T* bias = static_cast<const T*>(bias_in);
  T* y = static_cast<T*>(y_out);
  T* stats = static_cast<T*>(stats_out);
  const auto count = static_cast<double>(n);
  for (std::int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const double mean = mean_of(x, n);
    const double squares = sum_of(n, [&](std::int64_t i) {
      const double d = at(x, i) - mean;
      return d * d;
    });
    const double rstd = 1 / std::sqrt(squares / count + eps);
    for (std::int64_t i = 0; i < n; ++i) {
      const double centred = (at(x, i) - mean) * rstd;
      y[i] = static_cast<T>(centred * at_or(weight, i, 1) + at_or(bias, i, 0));
    }
    stats[2 * r] = static_cast<T>(mean);
    stats[2 * r + 1] = static_cast<T>(rstd);
  }
}

template <class T>
void rms(const void* x_in, std::int64_t rows, std::int64_t n, const void* weight_in, double eps,
         void* y_out, void* stats_out) {
  const T* x = static_cast<const T*>(x_in);
  const T* weight = static_cast<const T*>(weight_in);
  T* y = static_cast<T*>(y_out);
  for (std::int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const double squares = sum_of(n, [&](std::int64_t i) { return at(x, i) * at(x, i); });
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
    for (std::int64_t i = 0; i < n; ++i) {
      y[i] = static_cast<T>(at(x, i) * rstd * at_or(weight, i, 1));
    }
    static_cast<T*>(stats_out)[r] = static_cast<T>(rstd);
  }
}

template <class T, bool kCentred>
void backward(const void* g_in, const void* x_in, const void* stats_in, const void* weight_in,
              std::int64_t rows, std::int64_t n, void* dx_out, void* dweight_out, void* dbias_out) {
  const T* g = static_cast<const T*>(g_in);
  const T* x = static_cast<const T*>(x_in);
  const T* stats = static_cast<const T*>(stats_in);
  const T* weight = static_cast<const T*>(weight_in);
  T* dx = static_cast<T*>(dx_out);
  T* dweight = static_cast<T*>(dweight_out);
  T* dbias = static_cast<T*>(dbias_out);
  const auto count = static_cast<double>(n);
  for (std::int64_t r = 0; r < rows; ++r, g += n, x += n) {
    const double mean = kCentred ? at(stats, 2 * r) : 0;
    const double rstd = kCentred ? at(stats, 2 * r + 1) : at(stats, r);
    const auto hat = [&](std::int64_t i) { return (at(x, i) - mean) * rstd; };
    const auto gw = [&](std::int64_t i) { return at(g, i) * at_or(weight, i, 1); };
    if (dweight != nullptr) {
      for (std::int64_t i = 0; i < n; ++i) dweight[i] += static_cast<T>(at(g, i) * hat(i));
    }
    if (dbias != nullptr) {
      for (std::int64_t i = 0; i < n; ++i) dbias[i] += g[i];
    }
    if (dx == nullptr) continue;
    const double along = sum_of(n, [&](std::int64_t i) { return gw(i) * hat(i); }) / count;
    const double level = kCentred ? sum_of(n, gw) / count : 0;
    for (std::int64_t i = 0; i < n; ++i) {
      dx[i] = static_cast<T>(rstd * (gw(i) - level - hat(i) * along));
    }
    dx += n;
  }
}

template <class T>
void affine(const void* x_in, std::int64_t rows, std::int64_t n, const void* mean_in,
            const void* scale_in, const void* shift_in, bool per_row, void* y_out) {
  const T* x = static_cast<const T*>(x_in);
  const T* mean = static_cast<const T*>(mean_in);
  const T* scale = static_cast<const T*>(scale_in);
  const T* shift = static_cast<const T*>(shift_in);
  T* y = static_cast<T*>(y_out);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < n; ++i, ++x, ++y) {
      const std::int64_t k = per_row ? r : i;
      *y = static_cast<T>((at(x, 0) - at(mean, k)) * at(scale, k) + at(shift, k));
    }
  }
}

template <class T>
void run_sums(const void* g_in, const void* x_in, std::int64_t n, double mean, double* sums) {
  const T* g = static_cast<const T*>(g_in);
  const T* x = static_cast<const T*>(x_in);
  sums[0] += sum_of(n, [&](std::int64_t i) { return at(g, i); });
  sums[1] += sum_of(n, [&](std::int64_t i) { return at(g, i) * (at(x, i) - mean); });
}

template <class T>
void column_sums(const void* g_in, const void* x_in, std::int64_t rows, std::int64_t row_stride,
                 std::int64_t n, const void* mean_in, double* sums) {
  const T* g = static_cast<const T*>(g_in);
  const T* x = static_cast<const T*>(x_in);
  const T* mean = static_cast<const T*>(mean_in);
  for (std::int64_t r = 0; r < rows; ++r, g += row_stride, x += row_stride) {
    for (std::int64_t i = 0; i < n; ++i) {
      sums[i] += at(g, i);
      sums[n + i] += at(g, i) * (at(x, i) - at(mean, i));
    }
  }
}

template <class T>
void affine_backward(const void* g_in, const void* x_in, std::int64_t rows, std::int64_t n,
                     const void* a_in, const void* b_in, const void* c_in, const void* mean_in,
                     bool per_row, void* dx_out) {
  const T* g = static_cast<const T*>(g_in);
  const T* x = static_cast<const T*>(x_in);
  const T* a = static_cast<const T*>(a_in);
  const T* b = static_cast<const T*>(b_in);
  const T* c = static_cast<const T*>(c_in);
  const T* mean = static_cast<const T*>(mean_in);
  T* dx = static_cast<T*>(dx_out);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < n; ++i, ++g, ++x, ++dx) {
      const std::int64_t k = per_row ? r : i;
      *dx = static_cast<T>(at(a, k) * at(g, 0) + at(b, k) * (at(x, 0) - at(mean, k)) + at(c, k));
    }
  }
}

template <class T>
void exp_sum(const void* x_in, std::int64_t n, double* out) {
  const T* x = static_cast<const T*>(x_in);
  double max = -std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < n; ++i) {
    if (at(x, i) > max || std::isnan(at(x, i))) max = at(x, i);
  }
  out[0] = max;
  out[1] = std::isfinite(max) ? sum_of(n, [&](std::int64_t i) { return std::exp(at(x, i) - max); })
                              : std::numeric_limits<double>::quiet_NaN();
}

template <class T>
void exp_scaled(const void* x_in, std::int64_t n, double max, double scale, void* out) {
  const T* x = static_cast<const T*>(x_in);
  for (std::int64_t i = 0; i < n; ++i) {
    static_cast<T*>(out)[i] = static_cast<T>(std::exp(at(x, i) - max) * scale);
  }
}

template <class T>
constexpr NormFns fns() {
  return {layer<T>,    rms<T>,         backward<T, true>,  backward<T, false>, affine<T>,
          run_sums<T>, column_sums<T>, affine_backward<T>, exp_sum<T>,         exp_scaled<T>};
}

constexpr NormKernels kKernels = {fns<float>(), fns<double>()};

}  // namespace

void register_reference_norm(KernelTable& table) { table.norm = &kKernels; }

}  // namespace baregrad::kernels

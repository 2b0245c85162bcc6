// Kernels of fill, arange, linspace, eye, tril and triu.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "backends/cpu/irregular/irregular.h"
#include "backends/cpu/walkers/plan.h"
#include "backends/cpu/walkers/stage.h"
#include "core/multi_index.h"
#include "core/visit.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

// Bytes of one parallel chunk of a plain fill: about ten microseconds of memory traffic.
constexpr std::int64_t kFillBytes = 256 * 1024;

void zero_bytes(char* data, std::int64_t bytes) {
  parallel::parallel_for(bytes, kFillBytes, [&](std::int64_t begin, std::int64_t end) {
    std::memset(data + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

/// One element, repeated over a block that is copied by memcpy: this needs no alignment, and memcpy
/// is as fast as stores can be.
class RepeatedElement {
 public:
  RepeatedElement(const char* element, std::size_t width) {
    strided_copy(block_, static_cast<std::int64_t>(width), element, 0,
                 kBytes / static_cast<std::int64_t>(width), width);
  }
  void fill(char* dst, std::int64_t bytes) const {
    for (; bytes > 0; dst += kBytes, bytes -= kBytes) {
      std::memcpy(dst, block_, static_cast<std::size_t>(std::min(bytes, kBytes)));
    }
  }

 private:
  static constexpr std::int64_t kBytes = 4096;
  alignas(64) char block_[kBytes];
};

/// Elements first .. first + n - 1 of the plan's space, run by run.
void fill_strided(const Plan& plan, char* base, const char* element, std::size_t width,
                  std::int64_t first, std::int64_t n) {
  const int last = plan.ndim - 1;
  const std::int64_t* strides = plan.strides[0];
  while (n > 0) {
    const std::int64_t column = first % plan.shape[last];
    const std::int64_t count = std::min(n, plan.shape[last] - column);
    char* at = base + column * strides[last];
    move_to(
        last, first / plan.shape[last], [&](int d) { return plan.shape[d]; },
        [&](int d, std::int64_t i) { at += i * strides[d]; });
    strided_copy(at, strides[last], element, 0, count, width);
    first += count;
    n -= count;
  }
}

/// out[i] = value(i), converted, in parallel.
template <class T, class Value>
void generate(const View& out, std::int64_t n, Value value) {
  T* data = static_cast<T*>(out.data);
  parallel::parallel_for(n, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) data[i] = static_cast<T>(value(i));
  });
}

template <class T>
T saturate(double value) {
  constexpr double kBelow = static_cast<double>(std::numeric_limits<T>::min());
  const double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (value <= kBelow) return std::numeric_limits<T>::min();
  return value >= above ? std::numeric_limits<T>::max() : static_cast<T>(value);
}

/// Columns of row r on or below the diagonal: r + diagonal + 1, limited to 0..cols.
std::int64_t columns_below(std::int64_t r, std::int64_t diagonal, std::int64_t cols) {
  if (diagonal >= cols) return cols;
  if (diagonal < -r) return 0;
  return std::min(cols, r + diagonal + 1);
}

/// split(r) columns of row r go to one side, the rest to the other; `lower` keeps the first side.
template <class Split>
void triangle(const Call& call, bool lower, Split split) {
  const View& x = call.in[0];
  const std::int64_t n = numel(x);
  if (n == 0) return;
  const std::int64_t rows = x.shape[x.ndim - 2];
  const std::int64_t cols = x.shape[x.ndim - 1];
  const auto width = static_cast<std::int64_t>(itemsize(x.dtype));
  const char* src = static_cast<const char*>(x.data);
  char* dst = static_cast<char*>(call.out[0].data);
  const std::int64_t grain = std::max<std::int64_t>(1, kElementGrain / cols);
  parallel::parallel_for(n / cols, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto first = static_cast<std::size_t>(split(row % rows, cols) * width);
      const auto whole = static_cast<std::size_t>(cols * width);
      const char* from = src + row * cols * width;
      char* to = dst + row * cols * width;
      if (lower) {
        std::memcpy(to, from, first);
        std::memset(to + first, 0, whole - first);
      } else {
        std::memset(to, 0, first);
        std::memcpy(to + first, from + first, whole - first);
      }
    }
  });
}

}  // namespace

void fill_kernel(const Call& call) {
  const View& out = call.out[0];
  const View* views[] = {&out};
  const Plan plan = make_plan(views);
  if (plan.numel == 0) return;
  const std::size_t width = itemsize(out.dtype);
  char element[8];
  std::memcpy(element, &call.attrs.as<FillAttrs>().element, sizeof element);
  char* base = static_cast<char*>(out.data);
  if (!plan.is_flat(0, static_cast<std::int64_t>(width))) {
    parallel::parallel_for(plan.numel, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      fill_strided(plan, base, element, width, begin, end - begin);
    });
    return;
  }
  const std::int64_t bytes = plan.numel * static_cast<std::int64_t>(width);
  if (std::all_of(element, element + width, [](char c) { return c == 0; })) {
    zero_bytes(base, bytes);
    return;
  }
  const RepeatedElement pattern(element, width);
  parallel::parallel_for(bytes, kFillBytes, [&](std::int64_t begin, std::int64_t end) {
    pattern.fill(base + begin, end - begin);
  });
}

void arange_kernel(const Call& call) {
  const View& out = call.out[0];
  const auto& attrs = call.attrs.as<ArangeAttrs>();
  const std::int64_t n = attrs.count;
  visit_dtype(out.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T>) {
      if (attrs.integers) {
        // Modulo 2^64, so that no intermediate result overflows; both ends are known to fit.
        const auto start = attrs.int_start;
        const auto step = attrs.int_step;
        generate<T>(out, n,
                    [&](std::int64_t i) { return start + static_cast<std::uint64_t>(i) * step; });
        return;
      }
    }
    generate<T>(out, n,
                [&](std::int64_t i) { return attrs.start + static_cast<double>(i) * attrs.step; });
  });
}

void linspace_kernel(const Call& call) {
  const View& out = call.out[0];
  const auto& attrs = call.attrs.as<LinspaceAttrs>();
  const std::int64_t n = attrs.count;
  if (n == 0) return;
  const double start = attrs.start;
  const double stop = attrs.stop;
  const double steps = static_cast<double>(attrs.endpoint ? std::max<std::int64_t>(n - 1, 1) : n);
  const double span = stop - start;
  const double step = span / steps;
  // If the span overflows a double, interpolate from both ends; if it is so small that the step
  // underflows, multiply before dividing.
  const bool wide = !std::isfinite(span);
  const bool tiny = step == 0;
  const auto value = [&](std::int64_t i) {
    const auto x = static_cast<double>(i);
    if (wide) return start * (1 - x / steps) + stop * (x / steps);
    return (tiny ? x / steps * span : x * step) + start;
  };
  visit_dtype(out.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T>) {
      generate<T>(out, n, [&](std::int64_t i) { return saturate<T>(std::floor(value(i))); });
    } else {
      generate<T>(out, n, value);
    }
  });
  const std::size_t width = itemsize(out.dtype);
  char* data = static_cast<char*>(out.data);
  std::memcpy(data, &attrs.first, width);
  if (attrs.endpoint && n > 1) {
    std::memcpy(data + static_cast<std::size_t>(n - 1) * width, &attrs.last, width);
  }
}

void eye_kernel(const Call& call) {
  const View& out = call.out[0];
  const std::int64_t rows = out.shape[0];
  const std::int64_t cols = out.shape[1];
  const std::int64_t diagonal = call.attrs.as<EyeAttrs>().diagonal;
  const auto width = static_cast<std::int64_t>(itemsize(out.dtype));
  zero_bytes(static_cast<char*>(out.data), rows * cols * width);
  if (diagonal >= cols || diagonal <= -rows) return;
  const std::int64_t row = std::max<std::int64_t>(0, -diagonal);
  const std::int64_t col = std::max<std::int64_t>(0, diagonal);
  visit_dtype(out.dtype, [&]<class T>(TypeTag<T>) {
    T* at = static_cast<T*>(out.data) + row * cols + col;
    const std::int64_t count = std::min(rows - row, cols - col);
    for (std::int64_t i = 0; i < count; ++i) at[i * (cols + 1)] = static_cast<T>(1);
  });
}

void tril_kernel(const Call& call) {
  const std::int64_t diagonal = call.attrs.as<TriangleAttrs>().diagonal;
  triangle(call, true,
           [=](std::int64_t r, std::int64_t cols) { return columns_below(r, diagonal, cols); });
}

void triu_kernel(const Call& call) {
  const std::int64_t diagonal = call.attrs.as<TriangleAttrs>().diagonal;
  triangle(call, false, [=](std::int64_t r, std::int64_t cols) {
    // Elements strictly below the diagonal are cleared.
    return diagonal == std::numeric_limits<std::int64_t>::min()
               ? 0
               : columns_below(r, diagonal - 1, cols);
  });
}

}  // namespace baregrad::kernels

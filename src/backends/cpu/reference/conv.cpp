// The tiles of a convolution as plain loops.
#include "backends/cpu/conv/conv.h"

#include "backends/cpu/reference/reference.h"

namespace baregrad::kernels {

namespace {

template <class T>
void tile(const ConvTile& t) {
  const auto* a = static_cast<const T*>(t.a);
  const auto* x = static_cast<const T*>(t.x);
  auto* c = static_cast<T*>(t.c);
  for (std::int64_t q = 0; q < t.cols; ++q) {
    T sum = 0;
    for (std::int64_t p = 0; p < t.k; ++p) sum += a[p] * x[t.at[p] + q];
    c[q] = t.add ? c[q] + sum : sum;
  }
}

template <class T>
void sum(const ConvSum& s) {
  const auto* x = static_cast<const T*>(s.x) + s.at[0];
  const auto* g = static_cast<const T*>(s.g);
  auto* c = static_cast<T*>(s.c);
  for (std::int64_t j = 0; j < s.cols; ++j) {
    T total = 0;
    for (std::int64_t y = 0; y < s.height; ++y) {
      for (std::int64_t p = 0; p < s.width; ++p) {
        total += x[y * s.x_row + p] * g[(y * s.width + p) * s.g_row + j];
      }
    }
    c[j] = s.add ? c[j] + total : total;
  }
}

template <class T>
void stage(const ConvLines& s) {
  const auto* from = static_cast<const T*>(s.from);
  auto* to = static_cast<T*>(s.to);
  for (std::int64_t line = 0; line < s.lines; ++line, from += s.from_line, to += s.length) {
    for (std::int64_t i = 0; i < s.length; ++i) {
      to[i] = i >= s.begin && i < s.end ? from[(i - s.begin) * s.step] : T(0);
    }
  }
}

template <class T>
constexpr ConvKernelsOf plain() {
  ConvKernelsOf kernels;
  kernels.lanes = kernels.tile_rows = kernels.sum_rows = 1;
  kernels.tile[1] = tile<T>;
  kernels.sum[1] = sum<T>;
  kernels.stage = stage<T>;
  return kernels;
}

constexpr ConvKernels kReferenceConv{plain<float>(), plain<double>()};

}  // namespace

void register_reference_conv(KernelTable& table) { table.conv = &kReferenceConv; }

}  // namespace baregrad::kernels

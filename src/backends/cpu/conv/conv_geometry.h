// What the three convolution ops share: the sizes of a call, the kernels of its type.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/abi.h"
#include "backends/cpu/conv/conv.h"
#include "backends/cpu/conv/conv_plan.h"
#include "backends/cpu/table.h"

namespace baregrad::kernels {

template <class T>
const ConvKernelsOf& conv_kernels() {
  const ConvKernels& both = *active_table().conv;
  return sizeof(T) == sizeof(float) ? both.f32 : both.f64;
}

template <class T>
const GemmKernels& gemm_kernels() {
  return active_table()
      .gemm[static_cast<int>(sizeof(T) == sizeof(float) ? DType::Float32 : DType::Float64)];
}

inline bool is_empty(const View& v) {
  return std::find(v.shape, v.shape + v.ndim, 0) != v.shape + v.ndim;
}

/// The sizes of a call of any of the three ops; `weight` is [O, C / groups, KH, KW].
struct ConvGeometry {
  ConvGeometry(const ConvAttrs& attrs, const View& image, const View& result,
               const std::int64_t* kernel)
      : images(image.shape[0]),
        channels(image.shape[1]),
        height(image.shape[2]),
        width(image.shape[3]),
        filters(result.shape[1]),
        out_height(result.shape[2]),
        out_width(result.shape[3]),
        kernel_height(kernel[0]),
        kernel_width(kernel[1]),
        groups(attrs.groups),
        stride(attrs.stride),
        padding(attrs.padding),
        dilation(attrs.dilation) {
    // A stride or dilation that is never applied may be any number, too large to be multiplied.
    for (int axis = 0; axis < 2; ++axis) {
      if ((axis == 0 ? out_height : out_width) <= 1) stride[axis] = 1;
      if (this->kernel(axis) <= 1) dilation[axis] = 1;
    }
  }

  std::int64_t images, channels, height, width;
  std::int64_t filters, out_height, out_width;
  std::int64_t kernel_height, kernel_width;
  std::int64_t groups;
  Dims stride;
  Dims padding;
  Dims dilation;

  /// Every pixel is computed from one pixel: a product of matrices.
  bool pointwise() const {
    return kernel_height == 1 && kernel_width == 1 && height == out_height && width == out_width &&
           stride[0] == 1 && stride[1] == 1 && padding[0] == 0 && padding[1] == 0;
  }
  std::int64_t kernel(int axis) const { return axis == 0 ? kernel_height : kernel_width; }
  /// The places that the windows of conv2d read, along an axis.
  ConvTaps taps(int axis) const {
    ConvTaps out;
    out.step = stride[axis];
    for (std::int64_t k = 0; k < kernel(axis); ++k) {
      out.at.push_back(k * dilation[axis] - padding[axis]);
    }
    return out;
  }
};

/// Whether conv2d_input, done as correlations, would mostly multiply zeros.
bool suits_scatter(const ConvGeometry& s);

/// conv2d_input without correlations: each product of a pixel of `g` and a tap of `weight` is added
/// to the place of `out` where it belongs (scatter-add).
template <class T>
void scatter_products(const ConvGeometry& s, const T* g, const T* weight, T* out);

}  // namespace baregrad::kernels

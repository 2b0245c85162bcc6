// Convolutions and pooling.
#include "baregrad/ops_conv.h"
#include "tests/fuzz/calls.h"

namespace baregrad::fuzz {

namespace {

/// Mostly `usual` or slightly more; sometimes absurd.
std::int64_t about(Source& s, std::int64_t usual, std::int64_t spread) {
  const std::int64_t near = usual + s.below(spread);
  return s.chance(3) ? s.integer() : near;
}

Dims about(Source& s, int axes, std::int64_t usual, std::int64_t spread) {
  Dims out;
  const int count = s.chance(2) ? 3 - axes : axes;
  for (int i = 0; i < count; ++i) out.push_back(about(s, usual, spread));
  return out;
}

ConvOptions conv_options(Source& s, int axes) {
  ConvOptions options;
  options.stride = about(s, axes, 1, 3);
  options.padding = about(s, axes, 0, 4);
  options.dilation = about(s, axes, 1, 3);
  options.groups = s.chance(70) ? 1 : about(s, 1, 3);
  return options;
}

PoolOptions pool_options(Source& s, int axes) {
  PoolOptions options;
  options.kernel = about(s, axes, 1, 4);
  if (s.flag()) options.stride = about(s, axes, 1, 3);
  if (s.flag()) options.padding = about(s, axes, 0, 2);
  options.ceil_mode = s.flag();
  options.count_include_pad = s.flag();
  return options;
}

DType floating(Source& s) {
  if (s.chance(5)) return s.dtype();
  return s.one_of<DType>({float16, bfloat16, float32, float64});
}

/// Images or signals with `axes` axes and few pixels.
Tensor images(Source& s, int axes, std::int64_t channels, DType dtype) {
  if (s.chance(5)) return s.tensor(Size::Bounded, dtype);
  Dims shape;
  if (s.chance(80)) shape.push_back(s.below(3));
  shape.push_back(channels);
  for (int i = 0; i < axes; ++i) shape.push_back(s.chance(90) ? 3 + s.below(12) : s.below(3));
  return s.of_shape(shape, Size::Bounded, dtype);
}

Tensor filters(Source& s, int axes, std::int64_t first, std::int64_t second, DType dtype) {
  Dims shape = {first, second};
  for (int i = 0; i < axes; ++i) shape.push_back(s.chance(90) ? 1 + s.below(3) : s.below(5));
  return s.of_shape(shape, Size::Bounded, dtype);
}

Tensor bias_of(Source& s, std::int64_t size, DType dtype) {
  if (s.flag()) return Tensor();
  return s.of_shape({s.chance(5) ? size + 1 : size}, Size::Bounded, dtype);
}

/// The smallest image size along `axis` that gives `windows` windows of this kind; 3 if the numbers
/// are absurd.
std::int64_t image_of(std::int64_t windows, std::int64_t kernel, std::int64_t stride,
                      std::int64_t padding, std::int64_t dilation) {
  for (const std::int64_t number : {windows, kernel, stride, padding, dilation}) {
    if (number < 0 || number > 100) return 3;
  }
  return (windows - 1) * stride + dilation * (kernel - 1) + 1 - 2 * padding;
}

/// Mostly the result of image_of for both axes.
Dims fitting_image(Source& s, const Tensor& g, const Dims& kernel, const Dims& stride,
                   const Dims& padding, const Dims& dilation) {
  const Dims otherwise = about(s, 2, 0, 12);
  const bool sound = g.defined() && g.ndim() >= 2 && kernel.size() == 2 && stride.size() == 2 &&
                     padding.size() == 2 && dilation.size() == 2;
  if (!sound || s.chance(5)) return otherwise;
  Dims out;
  for (int i = 0; i < 2; ++i) {
    out.push_back(
        image_of(g.shape()[g.ndim() - 2 + i], kernel[i], stride[i], padding[i], dilation[i]));
  }
  return out;
}

/// Arguments of a convolution, mostly of matching sizes.
struct Conv {
  Conv(Source& s, int axes, bool turned)
      : options(conv_options(s, axes)), dtype(floating(s)), inner(s.below(4)), outer(s.below(5)) {
    const std::int64_t groups = options.groups > 0 && options.groups < 9 ? options.groups : 1;
    x = images(s, axes, inner * groups, dtype);
    weight = turned ? filters(s, axes, inner * groups, outer, dtype)
                    : filters(s, axes, outer * groups, inner, dtype);
    bias = bias_of(s, outer * groups, dtype);
  }
  ConvOptions options;
  DType dtype;
  std::int64_t inner;
  std::int64_t outer;
  Tensor x;
  Tensor weight;
  Tensor bias;
};

}  // namespace

std::vector<Row> conv_rows() {
  return {
      {"conv2d",
       [](Source& s) -> Results {
         const Conv c(s, 2, false);
         return {conv2d(c.x, c.weight, c.bias, c.options)};
       }},
      {"conv1d",
       [](Source& s) -> Results {
         const Conv c(s, 1, false);
         return {conv1d(c.x, c.weight, c.bias, c.options)};
       }},
      {"conv_transpose2d",
       [](Source& s) -> Results {
         const Conv c(s, 2, true);
         const Dims padding = about(s, 2, 0, 2);
         return {conv_transpose2d(c.x, c.weight, c.bias, c.options, padding)};
       },
       {"add"}},
      {"conv2d_input",
       [](Source& s) -> Results {
         const Conv c(s, 2, true);
         const Tensor g = c.x.defined() && c.x.ndim() == 3 ? expand_dims(c.x, {0}) : c.x;
         const Dims& w = c.weight.shape();
         const Dims image = fitting_image(s, g, {w[2], w[3]}, c.options.stride, c.options.padding,
                                          c.options.dilation);
         return {conv2d_input(g, c.weight, image, c.options)};
       }},
      {"conv2d_weight",
       [](Source& s) -> Results {
         ConvOptions options = conv_options(s, 2);
         options.groups = 1;
         const Dims kernel = about(s, 2, 1, 3);
         const DType dtype = floating(s);
         const std::int64_t batch = s.below(3);
         const std::int64_t filters = s.below(5);
         const std::int64_t height = s.below(6);
         const std::int64_t width = s.below(6);
         const Tensor g = s.of_shape({batch, filters, height, width}, Size::Bounded, dtype);
         const Dims image =
             fitting_image(s, g, kernel, options.stride, options.padding, options.dilation);
         Dims shape = {batch, s.below(4), 4, 4};
         for (int i = 0; i < image.size() && i < 2; ++i) {
           if (image[i] >= 0 && image[i] < 40) shape[2 + i] = image[i];
         }
         const Tensor x = s.of_shape(shape, Size::Bounded, dtype);
         return {conv2d_weight(x, g, kernel, options)};
       }},
      {"max_pool2d",
       [](Source& s) -> Results {
         const PoolOptions options = pool_options(s, 2);
         const DType dtype = floating(s);
         const Tensor x = images(s, 2, s.below(4), dtype);
         return {max_pool2d(x, options)};
       }},
      {"max_pool2d_with_indices",
       [](Source& s) -> Results {
         const PoolOptions options = pool_options(s, 2);
         const DType dtype = floating(s);
         const Tensor x = images(s, 2, s.below(4), dtype);
         const auto [values, positions] = max_pool2d_with_indices(x, options);
         return {values, positions};
       }},
      {"avg_pool2d",
       [](Source& s) -> Results {
         const PoolOptions options = pool_options(s, 2);
         const DType dtype = floating(s);
         const Tensor x = images(s, 2, s.below(4), dtype);
         return {avg_pool2d(x, options)};
       }},
      {"avg_pool2d_backward",
       [](Source& s) -> Results {
         const PoolOptions options = pool_options(s, 2);
         const DType dtype = floating(s);
         const Tensor g = images(s, 2, s.below(4), dtype);
         const Dims& stride = options.stride.empty() ? options.kernel : options.stride;
         const Dims padding = options.padding.empty() ? Dims{0, 0} : options.padding;
         const Dims image = fitting_image(s, g, options.kernel, stride, padding, {1, 1});
         return {avg_pool2d_backward(g, image, options)};
       }},
      {"max_pool1d",
       [](Source& s) -> Results {
         const PoolOptions options = pool_options(s, 1);
         const DType dtype = floating(s);
         const Tensor x = images(s, 1, s.below(4), dtype);
         return {max_pool1d(x, options)};
       }},
      {"avg_pool1d",
       [](Source& s) -> Results {
         const PoolOptions options = pool_options(s, 1);
         const DType dtype = floating(s);
         const Tensor x = images(s, 1, s.below(4), dtype);
         return {avg_pool1d(x, options)};
       }},
      {"adaptive_avg_pool2d",
       [](Source& s) -> Results {
         const DType dtype = floating(s);
         // Each window is a slice: an absurd number of them would take too long.
         const std::int64_t height = s.below(20);
         const std::int64_t width = s.below(20);
         s.visited_times(height * width);
         const Tensor x = images(s, 2, s.below(4), dtype);
         return {adaptive_avg_pool2d(x, {height, width})};
       },
       {"mean", "concat"}},
      {"adaptive_avg_pool1d",
       [](Source& s) -> Results {
         const DType dtype = floating(s);
         const std::int64_t length = s.below(20);
         s.visited_times(length);
         const Tensor x = images(s, 1, s.below(4), dtype);
         return {adaptive_avg_pool1d(x, length)};
       },
       {"mean", "concat"}},
  };
}

}  // namespace baregrad::fuzz

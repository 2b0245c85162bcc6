// Convolutions and pooling of images [N, C, H, W] and signals [N, C, L], with or without the batch
// axis. PyTorch's semantics.
#pragma once

#include <utility>

#include "baregrad/tensor.h"

namespace baregrad {

/// One number per axis: height and width, or only the length in the 1-d forms.
struct ConvOptions {
  Dims stride = {1, 1};
  Dims padding = {0, 0};
  Dims dilation = {1, 1};
  std::int64_t groups = 1;
};
/// x [N, C, H, W] with weight [O, C / groups, KH, KW] and bias [O], which may be undefined.
BAREGRAD_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor(),
                           const ConvOptions& options = {});
/// x [N, C, L] with weight [O, C / groups, K]; the options hold one number each.
BAREGRAD_API Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor(),
                           const ConvOptions& options = {{1}, {0}, {1}, 1});
/// The gradient of conv2d with respect to its input, as a layer: weight [C, O / groups, KH, KW].
BAREGRAD_API Tensor conv_transpose2d(const Tensor& x, const Tensor& weight,
                                     const Tensor& bias = Tensor(), const ConvOptions& options = {},
                                     const Dims& output_padding = {0, 0});

// The gradients of conv2d as ops. Each is linear in both tensors, and the gradients of one are the
// other two.
/// With respect to images of height and width `image`; g has the shape of conv2d's result.
BAREGRAD_API Tensor conv2d_input(const Tensor& g, const Tensor& weight, const Dims& image,
                                 const ConvOptions& options = {});
/// With respect to filters of height and width `kernel`.
BAREGRAD_API Tensor conv2d_weight(const Tensor& x, const Tensor& g, const Dims& kernel,
                                  const ConvOptions& options = {});

struct PoolOptions {
  Dims kernel;
  Dims stride = {};   ///< the kernel's size when empty
  Dims padding = {};  ///< none when empty
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< for averages
};
BAREGRAD_API Tensor max_pool2d(const Tensor& x, const PoolOptions& options);
/// Also returns the positions of the maxima, counted in the image's H * W pixels.
[[nodiscard]] BAREGRAD_API std::pair<Tensor, Tensor> max_pool2d_with_indices(
    const Tensor& x, const PoolOptions& options);
BAREGRAD_API Tensor avg_pool2d(const Tensor& x, const PoolOptions& options);
/// The gradient of avg_pool2d with respect to images of height and width `image`.
BAREGRAD_API Tensor avg_pool2d_backward(const Tensor& g, const Dims& image,
                                        const PoolOptions& options);
/// `output` (height and width) windows of nearly equal size.
BAREGRAD_API Tensor adaptive_avg_pool2d(const Tensor& x, const Dims& output);
BAREGRAD_API Tensor max_pool1d(const Tensor& x, const PoolOptions& options);
BAREGRAD_API Tensor avg_pool1d(const Tensor& x, const PoolOptions& options);
BAREGRAD_API Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t output);

}  // namespace baregrad

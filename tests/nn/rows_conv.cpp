// Rows of golden.txt: convolutions and pooling.
#include "tests/nn/support.h"

namespace baregrad {

using nn::Size;

std::vector<GoldenRow> conv_rows() {
  using Conv1 = nn::Conv1dOptions;
  using Conv2 = nn::Conv2dOptions;
  using Pool1 = nn::PoolLayerOptions<1>;
  using Pool2 = nn::PoolLayerOptions<2>;
  return {
      one_input<nn::Conv1d>("conv1d", 2, 3, 3),
      one_input<nn::Conv1d>(
          "conv1d_options", 4, 2, 2,
          Conv1{.stride = 2, .padding = 1, .dilation = 2, .groups = 2, .bias = false}),
      one_input<nn::Conv2d>("conv2d", 2, 3, 3),
      one_input<nn::Conv2d>(
          "conv2d_options", 4, 2, Size<2>{3, 2},
          Conv2{.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}, .groups = 2}),
      one_input<nn::Conv2d>("conv2d_padded", 1, 2, 3, Conv2{.padding = 1, .bias = false}),
      one_input<nn::ConvTranspose2d>("conv_transpose2d", 2, 3, 2),
      one_input<nn::ConvTranspose2d>(
          "conv_transpose2d_options", 2, 4, 3,
          Conv2{.stride = 2, .padding = 1, .groups = 2, .output_padding = 1}),
      one_input<nn::MaxPool1d>("max_pool1d", 3, Pool1{.stride = 2}),
      one_input<nn::MaxPool2d>("max_pool2d", 2),
      one_input<nn::MaxPool2d>(
          "max_pool2d_options", Size<2>{3, 2},
          Pool2{.stride = Size<2>{2, 1}, .padding = {1, 0}, .ceil_mode = true}),
      one_input<nn::AvgPool1d>("avg_pool1d", 2),
      one_input<nn::AvgPool2d>("avg_pool2d", 3, Pool2{.stride = 2, .padding = 1}),
      one_input<nn::AvgPool2d>("avg_pool2d_uncounted", 3,
                               Pool2{.stride = 2, .padding = 1, .count_include_pad = false}),
      one_input<nn::AdaptiveAvgPool1d>("adaptive_avg_pool1d", 3),
      one_input<nn::AdaptiveAvgPool2d>("adaptive_avg_pool2d", Size<2>{2, 3}),
      one_input<nn::AdaptiveAvgPool2d>("adaptive_avg_pool2d_one", 1),
  };
}

}  // namespace baregrad

// Convolutions and pooling as layers.
#include "baregrad/nn/conv.h"
#include "nn_bindings.h"
#include "nn_module.h"
#include "nn_sizes.h"

namespace baregrad::python {
namespace {

template <class L, int N>
void bind_convolution(nb::module_& nn, const char* name, const char* weight, const char* doc) {
  Layer<L>(nn, name, doc)
      .tensor("weight", weight)
      .tensor("bias", "[out_channels], or None.")
      .init(
          +[](void* place, std::int64_t in, std::int64_t out, Each<N> kernel, Each<N> stride,
              Each<N> padding, Each<N> dilation, std::int64_t groups, bool bias,
              DTypeOption dtype) {
            auto* layer = new (place) L(in, out, kernel.size(),
                                        {.stride = stride.size(),
                                         .padding = padding.size(),
                                         .dilation = dilation.size(),
                                         .groups = groups,
                                         .bias = bias});
            if (dtype) layer->to(*dtype);
          },
          nb::arg("in_channels"), nb::arg("out_channels"), nb::arg("kernel_size"),
          nb::arg("stride") = 1, nb::arg("padding") = 0, nb::arg("dilation") = 1,
          nb::arg("groups") = 1, nb::arg("bias") = true, nb::kw_only(),
          nb::arg("dtype") = nb::none())
      .forward();
}

void bind_transposed(nb::module_& nn) {
  Layer<nn::ConvTranspose2d>(nn, "ConvTranspose2d",
                             R"(The gradient of a convolution towards its input, as a layer.

>>> bg.nn.ConvTranspose2d(8, 3, 2, stride=2)(bg.ones((1, 8, 5, 5))).shape
(1, 3, 10, 10)
)")
      .tensor("weight", "[in_channels, out_channels / groups, height, width].")
      .tensor("bias", "[out_channels], or None.")
      .init(
          +[](void* place, std::int64_t in, std::int64_t out, Each<2> kernel, Each<2> stride,
              Each<2> padding, Each<2> output_padding, std::int64_t groups, bool bias,
              Each<2> dilation, DTypeOption dtype) {
            auto* layer =
                new (place) nn::ConvTranspose2d(in, out, kernel.size(),
                                                {.stride = stride.size(),
                                                 .padding = padding.size(),
                                                 .dilation = dilation.size(),
                                                 .groups = groups,
                                                 .bias = bias,
                                                 .output_padding = output_padding.size()});
            if (dtype) layer->to(*dtype);
          },
          nb::arg("in_channels"), nb::arg("out_channels"), nb::arg("kernel_size"),
          nb::arg("stride") = 1, nb::arg("padding") = 0, nb::arg("output_padding") = 0,
          nb::arg("groups") = 1, nb::arg("bias") = true, nb::arg("dilation") = 1, nb::kw_only(),
          nb::arg("dtype") = nb::none())
      .forward();
}

// ---- Pooling ------------------------------------------------------------------------------------

template <class L, int N>
void bind_max_pool(nb::module_& nn, const char* name, const char* doc) {
  Layer<L>(nn, name, doc)
      .init(
          +[](void* place, AsGiven<N> kernel, std::optional<AsGiven<N>> stride, AsGiven<N> padding,
              bool ceil_mode) {
            new (place)
                L(kernel.size(),
                  {.stride = size_of(stride), .padding = padding.size(), .ceil_mode = ceil_mode});
          },
          nb::arg("kernel_size"), nb::arg("stride") = nb::none(), nb::arg("padding") = 0,
          nb::kw_only(), nb::arg("ceil_mode") = false)
      .forward();
}

template <class L, int N>
void bind_avg_pool(nb::module_& nn, const char* name, const char* doc) {
  Layer<L>(nn, name, doc)
      .init(
          +[](void* place, AsGiven<N> kernel, std::optional<AsGiven<N>> stride, AsGiven<N> padding,
              bool ceil_mode, bool count_include_pad) {
            new (place) L(kernel.size(), {.stride = size_of(stride),
                                          .padding = padding.size(),
                                          .ceil_mode = ceil_mode,
                                          .count_include_pad = count_include_pad});
          },
          nb::arg("kernel_size"), nb::arg("stride") = nb::none(), nb::arg("padding") = 0,
          nb::arg("ceil_mode") = false, nb::arg("count_include_pad") = true)
      .forward();
}

void bind_adaptive(nb::module_& nn) {
  Layer<nn::AdaptiveAvgPool1d>(nn, "AdaptiveAvgPool1d",
                               R"(Means of output_size windows of nearly equal size.

>>> bg.nn.AdaptiveAvgPool1d(2)(bg.ones((1, 1, 6)))
tensor([[[1., 1.]]])
)")
      .init(
          +[](void* place, std::int64_t size) { new (place) nn::AdaptiveAvgPool1d(size); },
          nb::arg("output_size"))
      .forward();
  Layer<nn::AdaptiveAvgPool2d>(nn, "AdaptiveAvgPool2d",
                               R"(Means of output_size windows of nearly equal size.

>>> bg.nn.AdaptiveAvgPool2d(1)(bg.ones((2, 3, 6, 6))).shape
(2, 3, 1, 1)
)")
      .init(
          +[](void* place, AsGiven<2> size) { new (place) nn::AdaptiveAvgPool2d(size.size()); },
          nb::arg("output_size"))
      .forward();
}

}  // namespace

void bind_nn_conv(nb::module_& nn) {
  bind_convolution<nn::Conv1d, 1>(nn, "Conv1d", "[out_channels, in_channels / groups, length].",
                                  R"(A convolution of signals [N, in, L].

>>> bg.nn.Conv1d(3, 8, 5)(bg.ones((2, 3, 20))).shape
(2, 8, 16)
)");
  bind_convolution<nn::Conv2d, 2>(nn, "Conv2d",
                                  "[out_channels, in_channels / groups, height, width].",
                                  R"(A convolution of images [N, in, H, W].

>>> bg.nn.Conv2d(3, 8, 3, padding=1)(bg.ones((2, 3, 10, 10))).shape
(2, 8, 10, 10)
)");
  bind_transposed(nn);
  bind_max_pool<nn::MaxPool1d, 1>(nn, "MaxPool1d", R"(The greatest of each window.

>>> bg.nn.MaxPool1d(2)(bg.ones((1, 1, 6))).shape
(1, 1, 3)
)");
  bind_max_pool<nn::MaxPool2d, 2>(nn, "MaxPool2d", R"(The greatest of each window.

>>> bg.nn.MaxPool2d(2)(bg.ones((1, 3, 8, 8))).shape
(1, 3, 4, 4)
)");
  bind_avg_pool<nn::AvgPool1d, 1>(nn, "AvgPool1d", R"(The mean of each window.

>>> bg.nn.AvgPool1d(2)(bg.ones((1, 1, 4)))
tensor([[[1., 1.]]])
)");
  bind_avg_pool<nn::AvgPool2d, 2>(nn, "AvgPool2d", R"(The mean of each window.

>>> bg.nn.AvgPool2d(2)(bg.ones((1, 3, 8, 8))).shape
(1, 3, 4, 4)
)");
  bind_adaptive(nn);
}

}  // namespace baregrad::python

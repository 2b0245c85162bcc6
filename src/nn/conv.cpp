// Convolutions as layers.
#include "baregrad/nn/conv.h"

#include "baregrad/error.h"
#include "baregrad/nn/init.h"
#include "baregrad/ops.h"
#include "core/message.h"
#include "core/rename.h"
#include "nn/check.h"
#include "nn/text.h"

namespace baregrad::nn {

namespace {

[[noreturn]] void throw_size(const Dims& given, int wanted) {
  throw ShapeError(message("Size: ", to_string(given), " where ", wanted,
                           wanted == 1 ? " number is" : " numbers are", " needed"));
}

template <int N>
ConvOptions plain(const ConvLayerOptions<N>& options) {
  return {options.stride.dims(), options.padding.dims(), options.dilation.dims(), options.groups};
}

void require_each(const Dims& dims, std::int64_t least, const char* what, const char* who) {
  for (const std::int64_t d : dims) {
    if (d < least) {
      throw ValueError(message(who, ": ", what, " ", to_string(dims), " must be at least ", least));
    }
  }
}

}  // namespace

template <>
void Size<1>::throw_wrong_count(const Dims& given) {
  throw_size(given, 1);
}
template <>
void Size<2>::throw_wrong_count(const Dims& given) {
  throw_size(given, 2);
}

ConvLayer::ConvLayer(const Setup& setup)
    : in_channels_(setup.in_channels),
      out_channels_(setup.out_channels),
      kernel_(setup.kernel),
      options_(setup.options),
      output_padding_(setup.output_padding) {
  const std::int64_t groups = options_.groups;
  require_positive(in_channels_, "in_channels", setup.who);
  require_positive(out_channels_, "out_channels", setup.who);
  require_positive(groups, "groups", setup.who);
  if (in_channels_ % groups != 0 || out_channels_ % groups != 0) {
    throw ValueError(message(setup.who, ": ", in_channels_, " channels in and ", out_channels_,
                             " out cannot be divided into ", groups, " groups"));
  }
  require_each(kernel_, 1, "kernel_size", setup.who);
  require_each(options_.stride, 1, "stride", setup.who);
  require_each(options_.padding, 0, "padding", setup.who);
  require_each(options_.dilation, 1, "dilation", setup.who);
  require_each(output_padding_, 0, "output_padding", setup.who);
  Dims shape = setup.transposed ? Dims{in_channels_, out_channels_ / groups}
                                : Dims{out_channels_, in_channels_ / groups};
  for (const std::int64_t k : kernel_) shape.push_back(k);
  weight = in_name_of(setup.who, [&] { return empty(shape); });
  if (setup.with_bias) bias = in_name_of(setup.who, [&] { return empty({out_channels_}); });
  register_parameter("weight", weight);
  register_parameter("bias", bias);
  reset_parameters(setup.generator);
}

void ConvLayer::reset_parameters(Generator* generator) {
  init::default_weight_and_bias_(weight, bias, generator);
}

std::string ConvLayer::extra_repr() const {
  const auto all = [](const Dims& dims, std::int64_t value) {
    return dims == Dims(dims.size(), value);
  };
  std::string text = message(in_channels_, ", ", out_channels_, ", kernel_size=", text_of(kernel_),
                             ", stride=", text_of(options_.stride));
  if (!all(options_.padding, 0)) text += ", padding=" + text_of(options_.padding);
  if (!all(options_.dilation, 1)) text += ", dilation=" + text_of(options_.dilation);
  if (!all(output_padding_, 0)) text += ", output_padding=" + text_of(output_padding_);
  if (options_.groups != 1) text += message(", groups=", options_.groups);
  if (!bias.defined()) text += ", bias=False";
  return text;
}

Conv1d::Conv1d(std::int64_t in_channels, std::int64_t out_channels, const Size<1>& kernel,
               const Conv1dOptions& options)
    : ConvLayer({.who = "Conv1d",
                 .in_channels = in_channels,
                 .out_channels = out_channels,
                 .kernel = kernel.dims(),
                 .options = plain(options),
                 .with_bias = options.bias,
                 .generator = options.generator}) {}

Tensor Conv1d::forward(const Tensor& x) { return conv1d(x, weight, bias, options_); }

Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels, const Size<2>& kernel,
               const Conv2dOptions& options)
    : ConvLayer({.who = "Conv2d",
                 .in_channels = in_channels,
                 .out_channels = out_channels,
                 .kernel = kernel.dims(),
                 .options = plain(options),
                 .with_bias = options.bias,
                 .generator = options.generator}) {}

Tensor Conv2d::forward(const Tensor& x) { return conv2d(x, weight, bias, options_); }

ConvTranspose2d::ConvTranspose2d(std::int64_t in_channels, std::int64_t out_channels,
                                 const Size<2>& kernel, const Conv2dOptions& options)
    : ConvLayer({.who = "ConvTranspose2d",
                 .in_channels = in_channels,
                 .out_channels = out_channels,
                 .kernel = kernel.dims(),
                 .options = plain(options),
                 .output_padding = options.output_padding.dims(),
                 .transposed = true,
                 .with_bias = options.bias,
                 .generator = options.generator}) {}

Tensor ConvTranspose2d::forward(const Tensor& x) {
  return conv_transpose2d(x, weight, bias, options_, output_padding_);
}

}  // namespace baregrad::nn

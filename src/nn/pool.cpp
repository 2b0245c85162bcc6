// Pooling as layers.
#include "baregrad/error.h"
#include "baregrad/nn/conv.h"
#include "core/message.h"
#include "nn/check.h"
#include "nn/text.h"

namespace baregrad::nn {

namespace {

template <int N>
PoolOptions plain(const Size<N>& kernel, const PoolLayerOptions<N>& options) {
  return {.kernel = kernel.dims(),
          .stride = options.stride ? options.stride->dims() : kernel.dims(),
          .padding = options.padding.dims(),
          .ceil_mode = options.ceil_mode,
          .count_include_pad = options.count_include_pad};
}

/// PyTorch's text: 3 if the sizes of all axes are equal, otherwise (3, 5). AvgPool1d prints a
/// tuple.
std::string short_text(const Dims& dims, bool average = false) {
  const bool one = dims == Dims(dims.size(), dims[0]) && !(average && dims.size() == 1);
  return one ? std::to_string(dims[0]) : text_of(dims);
}

}  // namespace

PoolLayer::PoolLayer(const char* who, const PoolOptions& options, bool average)
    : options_(options), average_(average) {
  for (int i = 0; i < options.kernel.size(); ++i) {
    require_positive(options.kernel[i], "kernel_size", who);
    require_positive(options.stride[i], "stride", who);
    if (options.padding[i] < 0 || options.padding[i] > options.kernel[i] / 2) {
      throw ValueError(message(who, ": padding ", baregrad::to_string(options.padding),
                               " must lie between 0 and half of the kernel ",
                               baregrad::to_string(options.kernel), " (axis ", i, ")"));
    }
  }
}

std::string PoolLayer::extra_repr() const {
  std::string first = message("kernel_size=", short_text(options_.kernel, average_),
                              ", stride=", short_text(options_.stride, average_),
                              ", padding=", short_text(options_.padding, average_));
  if (average_) return first;
  return message(first, ", dilation=1, ceil_mode=", text_of(options_.ceil_mode));
}

MaxPool1d::MaxPool1d(const Size<1>& kernel, const PoolLayerOptions<1>& options)
    : PoolLayer("MaxPool1d", plain(kernel, options), false) {}
Tensor MaxPool1d::forward(const Tensor& x) { return max_pool1d(x, options_); }

MaxPool2d::MaxPool2d(const Size<2>& kernel, const PoolLayerOptions<2>& options)
    : PoolLayer("MaxPool2d", plain(kernel, options), false) {}
Tensor MaxPool2d::forward(const Tensor& x) { return max_pool2d(x, options_); }

AvgPool1d::AvgPool1d(const Size<1>& kernel, const PoolLayerOptions<1>& options)
    : PoolLayer("AvgPool1d", plain(kernel, options), true) {}
Tensor AvgPool1d::forward(const Tensor& x) { return avg_pool1d(x, options_); }

AvgPool2d::AvgPool2d(const Size<2>& kernel, const PoolLayerOptions<2>& options)
    : PoolLayer("AvgPool2d", plain(kernel, options), true) {}
Tensor AvgPool2d::forward(const Tensor& x) { return avg_pool2d(x, options_); }

AdaptiveAvgPool1d::AdaptiveAvgPool1d(std::int64_t output_size) : output_size_(output_size) {
  require_positive(output_size, "output_size", "AdaptiveAvgPool1d");
}
Tensor AdaptiveAvgPool1d::forward(const Tensor& x) { return adaptive_avg_pool1d(x, output_size_); }
std::string AdaptiveAvgPool1d::extra_repr() const { return message("output_size=", output_size_); }

AdaptiveAvgPool2d::AdaptiveAvgPool2d(const Size<2>& output_size)
    : output_size_(output_size.dims()) {
  require_positive(output_size_[0], "output_size", "AdaptiveAvgPool2d");
  require_positive(output_size_[1], "output_size", "AdaptiveAvgPool2d");
}
Tensor AdaptiveAvgPool2d::forward(const Tensor& x) { return adaptive_avg_pool2d(x, output_size_); }
std::string AdaptiveAvgPool2d::extra_repr() const {
  return message("output_size=", short_text(output_size_));
}

}  // namespace baregrad::nn

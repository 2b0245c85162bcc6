// Convolutions and pooling as layers, over ops_conv.h.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>

#include "baregrad/generator.h"
#include "baregrad/nn/module.h"
#include "baregrad/ops_conv.h"

namespace baregrad::nn {

/// N numbers, or one for all: Conv2d(3, 16, 3), Conv2d(3, 16, {3, 5}).
template <int N>
class Size {
 public:
  template <std::integral T>
  Size(T all) : dims_(N, static_cast<std::int64_t>(all)) {}  // NOLINT
  Size(std::initializer_list<std::int64_t> each) : Size(Dims(each)) {}
  Size(const Dims& each) : dims_(each) {  // NOLINT
    if (each.size() != N) throw_wrong_count(each);
  }
  const Dims& dims() const noexcept { return dims_; }

 private:
  [[noreturn]] static void throw_wrong_count(const Dims& given);
  Dims dims_;
};
template <>
[[noreturn]] BAREGRAD_API void Size<1>::throw_wrong_count(const Dims& given);
template <>
[[noreturn]] BAREGRAD_API void Size<2>::throw_wrong_count(const Dims& given);

template <int N>
struct ConvLayerOptions {
  Size<N> stride = 1;
  Size<N> padding = 0;
  Size<N> dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  Size<N> output_padding = 0;      ///< only for ConvTranspose2d
  Generator* generator = nullptr;  ///< for the initial weights
};
using Conv1dOptions = ConvLayerOptions<1>;
using Conv2dOptions = ConvLayerOptions<2>;

/// The base class of the convolutions.
class BAREGRAD_API ConvLayer : public Module {
 public:
  std::string extra_repr() const override;
  void reset_parameters(Generator* generator = nullptr);

  Tensor weight;
  Tensor bias;  ///< [out], or undefined

 protected:
  struct Setup {
    const char* who;
    std::int64_t in_channels;
    std::int64_t out_channels;
    Dims kernel;
    ConvOptions options;
    Dims output_padding = {};
    bool transposed = false;
    bool with_bias = true;
    Generator* generator = nullptr;
  };
  explicit ConvLayer(const Setup& setup);

  std::int64_t in_channels_;
  std::int64_t out_channels_;
  Dims kernel_;
  ConvOptions options_;
  Dims output_padding_;
};

/// [N, in, L] -> [N, out, L']; weight [out, in / groups, K].
class BAREGRAD_API Conv1d : public ConvLayer {
 public:
  Conv1d(std::int64_t in_channels, std::int64_t out_channels, const Size<1>& kernel,
         const Conv1dOptions& options = {});
  Tensor forward(const Tensor& x) override;
};

/// [N, in, H, W] -> [N, out, H', W']; weight [out, in / groups, KH, KW].
class BAREGRAD_API Conv2d : public ConvLayer {
 public:
  Conv2d(std::int64_t in_channels, std::int64_t out_channels, const Size<2>& kernel,
         const Conv2dOptions& options = {});
  Tensor forward(const Tensor& x) override;
};

/// weight [in, out / groups, KH, KW].
class BAREGRAD_API ConvTranspose2d : public ConvLayer {
 public:
  ConvTranspose2d(std::int64_t in_channels, std::int64_t out_channels, const Size<2>& kernel,
                  const Conv2dOptions& options = {});
  Tensor forward(const Tensor& x) override;
};

template <int N>
struct PoolLayerOptions {
  std::optional<Size<N>> stride = {};  ///< default: the kernel size
  Size<N> padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< only for average pooling
};

class BAREGRAD_API PoolLayer : public Module {
 public:
  std::string extra_repr() const override;

 protected:
  PoolLayer(const char* who, const PoolOptions& options, bool average);
  PoolOptions options_;

 private:
  bool average_;
};

class BAREGRAD_API MaxPool1d : public PoolLayer {
 public:
  explicit MaxPool1d(const Size<1>& kernel, const PoolLayerOptions<1>& options = {});
  Tensor forward(const Tensor& x) override;
};

class BAREGRAD_API MaxPool2d : public PoolLayer {
 public:
  explicit MaxPool2d(const Size<2>& kernel, const PoolLayerOptions<2>& options = {});
  Tensor forward(const Tensor& x) override;
};

class BAREGRAD_API AvgPool1d : public PoolLayer {
 public:
  explicit AvgPool1d(const Size<1>& kernel, const PoolLayerOptions<1>& options = {});
  Tensor forward(const Tensor& x) override;
};

class BAREGRAD_API AvgPool2d : public PoolLayer {
 public:
  explicit AvgPool2d(const Size<2>& kernel, const PoolLayerOptions<2>& options = {});
  Tensor forward(const Tensor& x) override;
};

class BAREGRAD_API AdaptiveAvgPool1d : public Module {
 public:
  explicit AdaptiveAvgPool1d(std::int64_t output_size);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;

 private:
  std::int64_t output_size_;
};

class BAREGRAD_API AdaptiveAvgPool2d : public Module {
 public:
  explicit AdaptiveAvgPool2d(const Size<2>& output_size);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;

 private:
  Dims output_size_;
};

}  // namespace baregrad::nn

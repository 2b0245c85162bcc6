// baregrad.nn.functional: layers and losses as functions, with PyTorch's argument names.
#include "baregrad/error.h"
#include "baregrad/nn/layers.h"
#include "baregrad/nn/losses.h"
#include "baregrad/ops.h"
#include "baregrad/ops_conv.h"
#include "baregrad/ops_fused.h"
#include "core/message.h"
#include "core/rename.h"
#include "nn_bindings.h"
#include "nn_choices.h"
#include "nn_module.h"
#include "nn_sizes.h"
#include "ops/widened.h"
#include "tensor_slots.h"

namespace baregrad::python {
namespace {

using MaybeTensor = std::optional<Tensor>;
using Word = std::string;

// ---- Activations --------------------------------------------------------------------------------

using Unary = Tensor (*)(const Tensor&);

void def_unary(nb::module_& m, const char* name, Unary op, const char* doc) {
  m.def(
      name, [op](const Tensor& x) { return unlocked(x.numel(), [&] { return op(x); }); },
      nb::arg("input"), doc);
}

using OneNumber = Tensor (*)(const Tensor&, double);

void def_one_number(nb::module_& m, const char* name, OneNumber op, const char* number,
                    double standard, const char* doc) {
  m.def(
      name,
      [op](const Tensor& x, double value) {
        return unlocked(x.numel(), [&] { return op(x, value); });
      },
      nb::arg("input"), nb::arg(number) = standard, doc);
}

using OverAxis = Tensor (*)(const Tensor&, std::int64_t);

void def_over_axis(nb::module_& m, const char* name, OverAxis op, const char* doc) {
  m.def(
      name,
      [op](const Tensor& x, std::int64_t dim, DTypeOption dtype) {
        return unlocked(x.numel(), [&] { return op(dtype ? astype(x, *dtype) : x, dim); });
      },
      nb::arg("input"), nb::arg("dim") = -1, nb::kw_only(), nb::arg("dtype") = nb::none(), doc);
}

void bind_activations(nb::module_& m) {
  def_unary(m, "relu", &relu,
            "x where x > 0, else 0.\n\n"
            ">>> bg.nn.functional.relu(bg.asarray([-1.0, 2.0]))\n"
            "tensor([0., 2.])\n");
  def_unary(m, "sigmoid", &sigmoid,
            "1 / (1 + exp(-x)).\n\n"
            ">>> bg.nn.functional.sigmoid(bg.asarray([0.0]))\n"
            "tensor([0.5000])\n");
  def_unary(m, "tanh", &tanh,
            "The hyperbolic tangent.\n\n"
            ">>> bg.nn.functional.tanh(bg.asarray([0.0]))\n"
            "tensor([0.])\n");
  def_unary(m, "silu", &silu,
            "x sigmoid(x).\n\n"
            ">>> bg.nn.functional.silu(bg.asarray([0.0]))\n"
            "tensor([0.])\n");
  def_unary(m, "mish", &mish,
            "x tanh(softplus(x)).\n\n"
            ">>> bg.nn.functional.mish(bg.asarray([0.0]))\n"
            "tensor([0.])\n");
  def_unary(m, "hardswish", &hardswish,
            "x clip(x + 3, 0, 6) / 6.\n\n"
            ">>> bg.nn.functional.hardswish(bg.asarray([3.0]))\n"
            "tensor([3.])\n");
  def_one_number(m, "leaky_relu", &leaky_relu, "negative_slope", 0.01,
                 "x where x > 0, else negative_slope x.\n\n"
                 ">>> bg.nn.functional.leaky_relu(bg.asarray([-2.0]), 0.5)\n"
                 "tensor([-1.])\n");
  def_one_number(m, "elu", &elu, "alpha", 1.0,
                 "x where x > 0, else alpha (exp(x) - 1).\n\n"
                 ">>> bg.nn.functional.elu(bg.asarray([2.0]))\n"
                 "tensor([2.])\n");
  m.def(
      "gelu",
      [](const Tensor& x, const Word& approximate) {
        const bool by_tanh = is_tanh(approximate, "gelu");
        return unlocked(x.numel(), [&] { return by_tanh ? gelu_tanh(x) : gelu(x); });
      },
      nb::arg("input"), nb::arg("approximate") = "none",
      "x Phi(x), Phi the normal distribution function; or approximate=\"tanh\".\n\n"
      ">>> bg.nn.functional.gelu(bg.asarray([0.0]))\n"
      "tensor([0.])\n");
  m.def(
      "softplus",
      [](const Tensor& x, double beta, double threshold) {
        return unlocked(x.numel(), [&] { return softplus(x, beta, threshold); });
      },
      nb::arg("input"), nb::arg("beta") = 1.0, nb::arg("threshold") = 20.0,
      "log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold.\n\n"
      ">>> bg.nn.functional.softplus(bg.asarray([30.0]))\n"
      "tensor([30.])\n");
  def_over_axis(m, "softmax", &softmax,
                "exp(x) / sum(exp(x)) over an axis, the last one when not said.\n\n"
                ">>> bg.nn.functional.softmax(bg.ones(2), dim=0)\ntensor([0.5000, 0.5000])\n");
  def_over_axis(m, "log_softmax", &log_softmax,
                "log(softmax(x)), exact where softmax is near 0.\n\n"
                ">>> bg.nn.functional.log_softmax(bg.ones(1))\n"
                "tensor([0.])\n");
}

// ---- Products and windows -----------------------------------------------------------------------

template <int N>
ConvOptions conv_options(const Each<N>& stride, const Each<N>& padding, const Each<N>& dilation,
                         std::int64_t groups, const char* who) {
  return in_name_of(who, [&]() -> ConvOptions {
    return {stride.size().dims(), padding.size().dims(), dilation.size().dims(), groups};
  });
}

using Convolution = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const ConvOptions&);

template <int N>
void def_convolution(nb::module_& m, const char* name, Convolution op, const char* doc) {
  m.def(
      name,
      [op, name](const Tensor& x, const Tensor& weight, MaybeTensor bias, Each<N> stride,
                 Each<N> padding, Each<N> dilation, std::int64_t groups) {
        const ConvOptions options = conv_options(stride, padding, dilation, groups, name);
        return unlocked_if(true, [&] { return op(x, weight, tensor_or_none(bias), options); });
      },
      nb::arg("input"), nb::arg("weight"), nb::arg("bias") = nb::none(), nb::arg("stride") = 1,
      nb::arg("padding") = 0, nb::arg("dilation") = 1, nb::arg("groups") = 1, doc);
}

using Pool = Tensor (*)(const Tensor&, const PoolOptions&);

template <int N>
void def_max_pool(nb::module_& m, const char* name, Pool op, const char* doc) {
  m.def(
      name,
      [op, name](const Tensor& x, Each<N> kernel, std::optional<Each<N>> stride, Each<N> padding,
                 bool ceil_mode) {
        const PoolOptions options = in_name_of(name, [&]() -> PoolOptions {
          return {.kernel = kernel.size().dims(),
                  .stride = dims_of(stride),
                  .padding = padding.size().dims(),
                  .ceil_mode = ceil_mode};
        });
        return unlocked(x.numel(), [&] { return op(x, options); });
      },
      nb::arg("input"), nb::arg("kernel_size"), nb::arg("stride") = nb::none(),
      nb::arg("padding") = 0, nb::kw_only(), nb::arg("ceil_mode") = false, doc);
}

template <int N>
void def_avg_pool(nb::module_& m, const char* name, Pool op, const char* doc) {
  m.def(
      name,
      [op, name](const Tensor& x, Each<N> kernel, std::optional<Each<N>> stride, Each<N> padding,
                 bool ceil_mode, bool count_include_pad) {
        const PoolOptions options = in_name_of(name, [&]() -> PoolOptions {
          return {.kernel = kernel.size().dims(),
                  .stride = dims_of(stride),
                  .padding = padding.size().dims(),
                  .ceil_mode = ceil_mode,
                  .count_include_pad = count_include_pad};
        });
        return unlocked(x.numel(), [&] { return op(x, options); });
      },
      nb::arg("input"), nb::arg("kernel_size"), nb::arg("stride") = nb::none(),
      nb::arg("padding") = 0, nb::arg("ceil_mode") = false, nb::arg("count_include_pad") = true,
      doc);
}

void bind_windows(nb::module_& m) {
  def_convolution<1>(m, "conv1d", &conv1d,
                     "A convolution of signals [N, C, L].\n\n"
                     ">>> bg.nn.functional.conv1d(bg.ones((1, 1, 4)), bg.ones((1, 1, 3)))\n"
                     "tensor([[[3., 3.]]])\n");
  def_convolution<2>(m, "conv2d", &conv2d,
                     "A convolution of images [N, C, H, W].\n\n"
                     ">>> bg.nn.functional.conv2d(bg.ones((1, 1, 3, 3)), bg.ones((1, 1, 3, 3)))\n"
                     "tensor([[[[9.]]]])\n");
  m.def(
      "conv_transpose2d",
      [](const Tensor& x, const Tensor& weight, MaybeTensor bias, Each<2> stride, Each<2> padding,
         Each<2> output_padding, std::int64_t groups, Each<2> dilation) {
        constexpr const char* kWho = "conv_transpose2d";
        const ConvOptions options = conv_options(stride, padding, dilation, groups, kWho);
        const Dims more = in_name_of(kWho, [&] { return output_padding.size().dims(); });
        return unlocked_if(
            true, [&] { return conv_transpose2d(x, weight, tensor_or_none(bias), options, more); });
      },
      nb::arg("input"), nb::arg("weight"), nb::arg("bias") = nb::none(), nb::arg("stride") = 1,
      nb::arg("padding") = 0, nb::arg("output_padding") = 0, nb::arg("groups") = 1,
      nb::arg("dilation") = 1,
      "The gradient of conv2d towards its input.\n\n"
      ">>> bg.nn.functional.conv_transpose2d(bg.ones((1, 2, 4, 4)), bg.ones((2, 3, 3, 3))).shape\n"
      "(1, 3, 6, 6)\n");
  def_max_pool<1>(m, "max_pool1d", &max_pool1d,
                  "The greatest of each window of [N, C, L].\n\n"
                  ">>> bg.nn.functional.max_pool1d(bg.ones((1, 1, 4)), 2)\n"
                  "tensor([[[1., 1.]]])\n");
  def_max_pool<2>(m, "max_pool2d", &max_pool2d,
                  "The greatest of each window of [N, C, H, W].\n\n"
                  ">>> bg.nn.functional.max_pool2d(bg.ones((1, 1, 8, 8)), 2).shape\n"
                  "(1, 1, 4, 4)\n");
  def_avg_pool<1>(m, "avg_pool1d", &avg_pool1d,
                  "The mean of each window of [N, C, L].\n\n"
                  ">>> bg.nn.functional.avg_pool1d(bg.ones((1, 1, 4)), 2)\n"
                  "tensor([[[1., 1.]]])\n");
  def_avg_pool<2>(m, "avg_pool2d", &avg_pool2d,
                  "The mean of each window of [N, C, H, W].\n\n"
                  ">>> bg.nn.functional.avg_pool2d(bg.ones((1, 1, 8, 8)), 2).shape\n"
                  "(1, 1, 4, 4)\n");
  m.def(
      "adaptive_avg_pool1d",
      [](const Tensor& x, std::int64_t size) {
        return unlocked(x.numel(), [&] { return adaptive_avg_pool1d(x, size); });
      },
      nb::arg("input"), nb::arg("output_size"),
      "Means of windows of nearly equal size.\n\n"
      ">>> bg.nn.functional.adaptive_avg_pool1d(bg.ones((1, 1, 6)), 2).shape\n"
      "(1, 1, 2)\n");
  m.def(
      "adaptive_avg_pool2d",
      [](const Tensor& x, Each<2> size) {
        return unlocked(x.numel(), [&] {
          return in_name_of("adaptive_avg_pool2d",
                            [&] { return adaptive_avg_pool2d(x, size.size().dims()); });
        });
      },
      nb::arg("input"), nb::arg("output_size"),
      "Means of windows of nearly equal size.\n\n"
      ">>> bg.nn.functional.adaptive_avg_pool2d(bg.ones((1, 3, 6, 6)), 1).shape\n"
      "(1, 3, 1, 1)\n");
}

void bind_linear_function(nb::module_& m) {
  m.def(
      "linear",
      [](const Tensor& x, const Tensor& weight, MaybeTensor bias, std::optional<Word> activation) {
        const Activation act = activation_from(activation, "linear");
        return unlocked_if(is_long_product(x, weight),
                           [&] { return linear(x, weight, tensor_or_none(bias), act); });
      },
      nb::arg("input"), nb::arg("weight"), nb::arg("bias") = nb::none(),
      nb::arg("activation") = nb::none(),
      "act(x W^T + b) over the last axis.\n\n"
      ">>> bg.nn.functional.linear(bg.ones(3), bg.ones((2, 3)))\ntensor([3., 3.])\n");
  m.def(
      "scaled_dot_product_attention",
      [](const Tensor& q, const Tensor& k, const Tensor& v, MaybeTensor mask, double dropout_p,
         bool is_causal, std::optional<double> scale) {
        constexpr const char* kWho = "scaled_dot_product_attention";
        if (dropout_p != 0.0) {
          throw ValueError(message(kWho, ": dropout_p ", dropout_p, " is not supported; ",
                                   "MultiheadAttention(dropout=...) drops weights"));
        }
        if (mask && is_causal) {
          throw ValueError(message(kWho, ": give a mask or is_causal, not both"));
        }
        return unlocked_if(true, [&] {
          return scaled_dot_product_attention(
              q, k, v, {.mask = tensor_or_none(mask), .causal = is_causal, .scale = scale});
        });
      },
      nb::arg("query"), nb::arg("key"), nb::arg("value"), nb::arg("attn_mask") = nb::none(),
      nb::arg("dropout_p") = 0.0, nb::arg("is_causal") = false, nb::kw_only(),
      nb::arg("scale") = nb::none(),
      "softmax(q k^T scale) v; in a mask of bools True means \"look\".\n\n"
      ">>> q = bg.ones((1, 4, 8))\n"
      ">>> bg.nn.functional.scaled_dot_product_attention(q, q, q).shape\n(1, 4, 8)\n");
}

// ---- Normalisation and the rest of the layers ---------------------------------------------------

void bind_norms(nb::module_& m) {
  m.def(
      "layer_norm",
      [](const Tensor& x, const Dims& shape, MaybeTensor weight, MaybeTensor bias, double eps) {
        return unlocked(x.numel(), [&] {
          return layer_norm(x, shape, tensor_or_none(weight), tensor_or_none(bias), eps);
        });
      },
      nb::arg("input"), nb::arg("normalized_shape"), nb::arg("weight") = nb::none(),
      nb::arg("bias") = nb::none(), nb::arg("eps") = 1e-5,
      "Mean 0 and variance 1 over the last axes, then weight and bias.\n\n"
      ">>> bg.nn.functional.layer_norm(bg.ones((2, 4)), 4).shape\n"
      "(2, 4)\n");
  m.def(
      "rms_norm",
      [](const Tensor& x, const Dims& shape, MaybeTensor weight, std::optional<double> eps) {
        return unlocked(x.numel(), [&] { return rms_norm(x, shape, tensor_or_none(weight), eps); });
      },
      nb::arg("input"), nb::arg("normalized_shape"), nb::arg("weight") = nb::none(),
      nb::arg("eps") = nb::none(),
      "x / sqrt(mean(x^2) + eps) * weight over the last axes.\n\n"
      ">>> bg.nn.functional.rms_norm(bg.ones((2, 4)), 4).shape\n"
      "(2, 4)\n");
  m.def(
      "group_norm",
      [](const Tensor& x, std::int64_t groups, MaybeTensor weight, MaybeTensor bias, double eps) {
        return unlocked(x.numel(), [&] {
          return group_norm(x, groups, tensor_or_none(weight), tensor_or_none(bias), eps);
        });
      },
      nb::arg("input"), nb::arg("num_groups"), nb::arg("weight") = nb::none(),
      nb::arg("bias") = nb::none(), nb::arg("eps") = 1e-5,
      "Mean 0 and variance 1 over each group of channels of [N, C, ...].\n\n"
      ">>> bg.nn.functional.group_norm(bg.ones((2, 4, 3)), 2).shape\n"
      "(2, 4, 3)\n");
  m.def(
      "batch_norm",
      [](const Tensor& x, MaybeTensor mean, MaybeTensor var, MaybeTensor weight, MaybeTensor bias,
         bool training, double momentum, double eps) {
        return unlocked(x.numel(), [&] {
          return batch_norm(x, tensor_or_none(mean), tensor_or_none(var), tensor_or_none(weight),
                            tensor_or_none(bias), training, momentum, eps);
        });
      },
      nb::arg("input"), nb::arg("running_mean").none(), nb::arg("running_var").none(),
      nb::arg("weight") = nb::none(), nb::arg("bias") = nb::none(), nb::arg("training") = false,
      nb::arg("momentum") = 0.1, nb::arg("eps") = 1e-5,
      "Mean 0 and variance 1 over the batch; else by the running ones, which training moves.\n\n"
      ">>> bg.nn.functional.batch_norm(bg.ones((2, 4)), None, None, training=True).shape\n"
      "(2, 4)\n");
}

/// PyTorch lists the axes from the last one.
Tensor padded(const Tensor& x, const std::vector<std::int64_t>& pads, const Word& mode,
              const Scalar& value) {
  const std::pair<const char*, PadMode> modes[] = {{"constant", PadMode::Constant},
                                                   {"reflect", PadMode::Reflect},
                                                   {"replicate", PadMode::Edge},
                                                   {"circular", PadMode::Wrap}};
  const auto ndim = static_cast<std::size_t>(x.ndim());
  if (pads.size() % 2 != 0 || pads.size() > 2 * ndim) {
    throw ValueError(message("pad: needs two numbers per axis, last axis first, got ", pads.size(),
                             " of them for ", describe(x)));
  }
  std::vector<std::int64_t> widths(2 * ndim, 0);
  for (std::size_t i = 0; i < pads.size() / 2; ++i) {
    widths[2 * (ndim - 1 - i)] = pads[2 * i];
    widths[2 * (ndim - 1 - i) + 1] = pads[2 * i + 1];
  }
  for (const auto& [word, pad_mode] : modes) {
    if (mode == word) {
      return unlocked(x.numel(), [&, how = pad_mode] { return pad(x, widths, how, value); });
    }
  }
  throw ValueError(message("pad: mode '", mode,
                           "' is unknown; it is one of 'constant', 'reflect', 'replicate', ",
                           "'circular'"));
}

Tensor one_hot(const Tensor& x, std::int64_t num_classes) {
  constexpr const char* kWho = "one_hot";
  if (!is_integer(x.dtype())) {
    throw DTypeError(message(kWho, ": classes must be integers, not ", describe(x)));
  }
  if (x.numel() > 0 && amin(x).item<std::int64_t>() < 0) {
    throw ValueError(message(kWho, ": class ", amin(x).item<std::int64_t>(), " is negative"));
  }
  const std::int64_t greatest = x.numel() > 0 ? amax(x).item<std::int64_t>() : -1;
  const std::int64_t classes = num_classes < 0 ? greatest + 1 : num_classes;
  if (greatest >= classes || classes == 0) {
    throw ValueError(message(kWho, ": class ", greatest, " of ", classes, " classes"));
  }
  return in_name_of(kWho, [&] {
    return astype(equal(expand_dims(x, {-1}), arange(classes, x.dtype())), DType::Int64);
  });
}

void bind_layers(nb::module_& m) {
  m.def(
      "dropout",
      [](const Tensor& x, double p, bool training) {
        return unlocked(x.numel(), [&] { return nn::dropout(x, p, training); });
      },
      nb::arg("input"), nb::arg("p") = 0.5, nb::arg("training") = true,
      "In training each element is 0 with probability p, else divided by 1 - p.\n\n"
      ">>> bg.nn.functional.dropout(bg.ones(2), training=False)\n"
      "tensor([1., 1.])\n");
  m.def(
      "embedding",
      [](const Tensor& indices, const Tensor& weight, std::optional<std::int64_t> padding_idx) {
        return unlocked(indices.numel(),
                        [&] { return nn::embedding(indices, weight, padding_idx); });
      },
      nb::arg("input"), nb::arg("weight"), nb::arg("padding_idx") = nb::none(),
      "Rows of a table by integers of any shape.\n\n"
      ">>> bg.nn.functional.embedding(bg.asarray([1, 0]), bg.asarray([[5.0], [6.0]]))\n"
      "tensor([[6.],\n        [5.]])\n");
  m.def("one_hot", &one_hot, nb::arg("tensor"), nb::arg("num_classes") = -1,
        "1 at the place of the class, in a new last axis.\n\n"
        ">>> bg.nn.functional.one_hot(bg.asarray([0, 2]))\n"
        "tensor([[1, 0, 0],\n        [0, 0, 1]])\n");
  m.def("pad", &padded, nb::arg("input"), nb::arg("pad"), nb::arg("mode") = "constant",
        nb::arg("value") = 0,
        "Adds elements before and after; two numbers per axis, the last axis first.\n\n"
        ">>> bg.nn.functional.pad(bg.ones(2), (1, 0))\ntensor([0., 1., 1.])\n");
  m.def(
      "normalize",
      [](const Tensor& x, double p, const Axes& dim, double eps) {
        return unlocked(x.numel(), [&] {
          const Widened wide({&x});
          const Tensor full = wide(x);
          return in_name_of("normalize", [&] {
            return wide.rounded(full / maximum(norm(full, p, dim, true), eps));
          });
        });
      },
      nb::arg("input"), nb::arg("p") = 2.0, nb::arg("dim") = 1, nb::arg("eps") = 1e-12,
      "x divided by its norm along an axis.\n\n"
      ">>> bg.nn.functional.normalize(bg.asarray([3.0, 4.0]), dim=0)\n"
      "tensor([0.6000, 0.8000])\n");
}

// ---- Losses -------------------------------------------------------------------------------------

using PlainLoss = Tensor (*)(const Tensor&, const Tensor&, Reduction);

void def_loss(nb::module_& m, const char* name, PlainLoss loss, const char* doc) {
  m.def(
      name,
      [loss, name](const Tensor& input, const Tensor& target, const Word& reduction) {
        const Reduction how = reduction_from(reduction, name);
        return unlocked(input.numel(), [&] { return loss(input, target, how); });
      },
      nb::arg("input"), nb::arg("target"), nb::kw_only(), nb::arg("reduction") = "mean", doc);
}

using NumberLoss = Tensor (*)(const Tensor&, const Tensor&, Reduction, double);

void def_number_loss(nb::module_& m, const char* name, NumberLoss loss, const char* number,
                     const char* doc) {
  m.def(
      name,
      [loss, name](const Tensor& input, const Tensor& target, const Word& reduction, double value) {
        const Reduction how = reduction_from(reduction, name);
        return unlocked(input.numel(), [&] { return loss(input, target, how, value); });
      },
      nb::arg("input"), nb::arg("target"), nb::kw_only(), nb::arg("reduction") = "mean",
      nb::arg(number) = 1.0, doc);
}

void bind_plain_losses(nb::module_& m) {
  def_loss(m, "mse_loss", &nn::mse_loss,
           "(x - t)^2.\n\n"
           ">>> bg.nn.functional.mse_loss(bg.ones(2), bg.asarray([1.0, 3.0]))\ntensor(2.)\n");
  def_loss(m, "l1_loss", &nn::l1_loss,
           "|x - t|.\n\n"
           ">>> bg.nn.functional.l1_loss(bg.ones(2), bg.asarray([1.0, 3.0]))\n"
           "tensor(1.)\n");
  def_number_loss(m, "smooth_l1_loss", &nn::smooth_l1_loss, "beta",
                  "d^2 / (2 beta) where d = |x - t| is below beta, else d - beta / 2.\n\n"
                  ">>> bg.nn.functional.smooth_l1_loss(bg.ones(1), bg.asarray([3.0]))\n"
                  "tensor(1.5000)\n");
  def_number_loss(m, "huber_loss", &nn::huber_loss, "delta",
                  "d^2 / 2 where d = |x - t| is below delta, else delta (d - delta / 2).\n\n"
                  ">>> bg.nn.functional.huber_loss(bg.ones(1), bg.asarray([3.0]))\n"
                  "tensor(1.5000)\n");
  m.def(
      "binary_cross_entropy",
      [](const Tensor& input, const Tensor& target, MaybeTensor weight, const Word& reduction) {
        const Reduction how = reduction_from(reduction, "binary_cross_entropy");
        return unlocked(input.numel(), [&] {
          return nn::binary_cross_entropy(input, target, tensor_or_none(weight), how);
        });
      },
      nb::arg("input"), nb::arg("target"), nb::arg("weight") = nb::none(), nb::kw_only(),
      nb::arg("reduction") = "mean",
      "-t log x - (1 - t) log(1 - x), x probabilities.\n\n"
      ">>> bg.nn.functional.binary_cross_entropy(bg.asarray([0.5]), bg.asarray([1.0]))\n"
      "tensor(0.6931)\n");
  m.def(
      "binary_cross_entropy_with_logits",
      [](const Tensor& input, const Tensor& target, MaybeTensor weight, const Word& reduction,
         MaybeTensor pos_weight) {
        const Reduction how = reduction_from(reduction, "binary_cross_entropy_with_logits");
        return unlocked(input.numel(), [&] {
          return nn::binary_cross_entropy_with_logits(input, target, tensor_or_none(weight),
                                                      tensor_or_none(pos_weight), how);
        });
      },
      nb::arg("input"), nb::arg("target"), nb::arg("weight") = nb::none(), nb::kw_only(),
      nb::arg("reduction") = "mean", nb::arg("pos_weight") = nb::none(),
      "binary_cross_entropy of sigmoid(x), exact for large x.\n\n"
      ">>> bg.nn.functional.binary_cross_entropy_with_logits(bg.asarray([0.0]), "
      "bg.asarray([1.0]))\n"
      "tensor(0.6931)\n");
}

void bind_class_losses(nb::module_& m) {
  m.def(
      "cross_entropy",
      [](const Tensor& input, const Tensor& target, MaybeTensor weight, std::int64_t ignore_index,
         const Word& reduction, double label_smoothing) {
        const CrossEntropyOptions options = {
            .weight = tensor_or_none(weight),
            .ignore_index = ignore_index,
            .label_smoothing = label_smoothing,
            .reduction = reduction_from(reduction, "cross_entropy")};
        return unlocked(input.numel(), [&] { return cross_entropy(input, target, options); });
      },
      nb::arg("input"), nb::arg("target"), nb::arg("weight") = nb::none(), nb::kw_only(),
      nb::arg("ignore_index") = -100, nb::arg("reduction") = "mean",
      nb::arg("label_smoothing") = 0.0,
      "-log softmax(x)[target]: of logits [N, C, ...] and classes or probabilities.\n\n"
      ">>> bg.nn.functional.cross_entropy(bg.asarray([[0.0, 0.0]]), bg.asarray([1]))\n"
      "tensor(0.6931)\n");
  m.def(
      "nll_loss",
      [](const Tensor& input, const Tensor& target, MaybeTensor weight, std::int64_t ignore_index,
         const Word& reduction) {
        const nn::NLLOptions options = {.weight = tensor_or_none(weight),
                                        .ignore_index = ignore_index,
                                        .reduction = reduction_from(reduction, "nll_loss")};
        return unlocked(input.numel(), [&] { return nn::nll_loss(input, target, options); });
      },
      nb::arg("input"), nb::arg("target"), nb::arg("weight") = nb::none(), nb::kw_only(),
      nb::arg("ignore_index") = -100, nb::arg("reduction") = "mean",
      "-x[target], x log-probabilities [N, C, ...].\n\n"
      ">>> bg.nn.functional.nll_loss(bg.asarray([[-1.0, -2.0]]), bg.asarray([1]))\n"
      "tensor(2.)\n");
  m.def(
      "kl_div",
      [](const Tensor& input, const Tensor& target, const Word& reduction, bool log_target) {
        const bool batch = reduction == "batchmean";
        const Reduction how = batch ? Reduction::Sum : reduction_from(reduction, "kl_div");
        return unlocked(input.numel(), [&] {
          if (!batch) return nn::kl_div(input, target, how, log_target);
          const Widened wide({&input, &target});
          const Tensor total = nn::kl_div(wide(input), wide(target), how, log_target);
          return wide.rounded(total / input.size(0));
        });
      },
      nb::arg("input"), nb::arg("target"), nb::kw_only(), nb::arg("reduction") = "mean",
      nb::arg("log_target") = false,
      "t (log t - x), x log-probabilities; \"batchmean\" is the sum divided by the batch.\n\n"
      ">>> bg.nn.functional.kl_div(bg.asarray([[-1.0]]), bg.asarray([[1.0]]))\n"
      "tensor(1.)\n");
  m.def(
      "multi_margin_loss",
      [](const Tensor& input, const Tensor& target, int p, double margin, MaybeTensor weight,
         const Word& reduction) {
        const nn::MultiMarginOptions options = {
            .p = p,
            .margin = margin,
            .weight = tensor_or_none(weight),
            .reduction = reduction_from(reduction, "multi_margin_loss")};
        return unlocked(input.numel(),
                        [&] { return nn::multi_margin_loss(input, target, options); });
      },
      nb::arg("input"), nb::arg("target"), nb::arg("p") = 1, nb::arg("margin") = 1.0,
      nb::arg("weight") = nb::none(), nb::kw_only(), nb::arg("reduction") = "mean",
      "The hinge of several classes: sum of max(0, margin - x[t] + x[j])^p / C.\n\n"
      ">>> bg.nn.functional.multi_margin_loss(bg.asarray([[0.0, 2.0]]), bg.asarray([0]))\n"
      "tensor(1.5000)\n");
}

void bind_embedding_losses(nb::module_& m) {
  m.def(
      "hinge_embedding_loss",
      [](const Tensor& input, const Tensor& target, double margin, const Word& reduction) {
        const Reduction how = reduction_from(reduction, "hinge_embedding_loss");
        return unlocked(input.numel(),
                        [&] { return nn::hinge_embedding_loss(input, target, margin, how); });
      },
      nb::arg("input"), nb::arg("target"), nb::arg("margin") = 1.0, nb::kw_only(),
      nb::arg("reduction") = "mean",
      "x where the target is 1, max(0, margin - x) where it is -1.\n\n"
      ">>> bg.nn.functional.hinge_embedding_loss(bg.asarray([3.0]), bg.asarray([1.0]))\n"
      "tensor(3.)\n");
  m.def(
      "cosine_embedding_loss",
      [](const Tensor& a, const Tensor& b, const Tensor& target, double margin,
         const Word& reduction) {
        const Reduction how = reduction_from(reduction, "cosine_embedding_loss");
        return unlocked(a.numel(),
                        [&] { return nn::cosine_embedding_loss(a, b, target, margin, how); });
      },
      nb::arg("input1"), nb::arg("input2"), nb::arg("target"), nb::arg("margin") = 0.0,
      nb::kw_only(), nb::arg("reduction") = "mean",
      "1 - cos(a, b) where the target is 1, max(0, cos(a, b) - margin) where it is -1.\n\n"
      ">>> bg.nn.functional.cosine_embedding_loss(bg.ones((2, 3)), bg.ones((2, 3)), "
      "bg.ones(2)).shape\n"
      "()\n");
}

}  // namespace

void bind_nn_functional(nb::module_& functional) {
  bind_activations(functional);
  bind_windows(functional);
  bind_linear_function(functional);
  bind_norms(functional);
  bind_layers(functional);
  bind_plain_losses(functional);
  bind_class_losses(functional);
  bind_embedding_losses(functional);
}

}  // namespace baregrad::python

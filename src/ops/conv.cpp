// Convolutions: public functions and infer functions of conv2d and its gradients.
#include <string>
#include <utility>
#include <vector>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "baregrad/ops_conv.h"
#include "core/checked.h"
#include "core/message.h"
#include "ops/dispatch.h"
#include "ops/infer.h"
#include "ops/internal_ops.h"

namespace baregrad {

namespace {

void require_conv_dtype(const Tensor& x, const char* what, const char* who) {
  if (!x.defined()) throw ValueError(message(who, ": ", what, " is undefined"));
  if (!is_floating(x.dtype())) {
    throw DTypeError(
        message(who, ": ", what, " is ", describe(x),
                ", but only floating-point tensors are taken; convert it with astype"));
  }
}

/// `batched` axes, or one less where there is no batch.
void require_axes(const Tensor& x, int batched, const char* what, const char* layout,
                  const char* who) {
  if (x.ndim() == batched || x.ndim() == batched - 1) return;
  throw ShapeError(message(who, ": ", what, " must be ", layout,
                           " with or without its first axis, not ", describe(x)));
}

void require_numbers(const Dims& numbers, int count, const char* what, const char* who) {
  if (numbers.size() == count) return;
  throw ValueError(message(who, ": ", what, " is ", to_string(numbers), ", but ", count,
                           count == 1 ? " number is" : " numbers are", " needed, one per axis"));
}

void require_options(const ConvOptions& options, int axes, const char* who) {
  require_numbers(options.stride, axes, "stride", who);
  require_numbers(options.padding, axes, "padding", who);
  require_numbers(options.dilation, axes, "dilation", who);
  for (int i = 0; i < axes; ++i) {
    if (options.stride[i] < 1 || options.dilation[i] < 1 || options.padding[i] < 0) {
      throw ValueError(message(who, ": stride ", to_string(options.stride), " and dilation ",
                               to_string(options.dilation), " must be 1 or more, padding ",
                               to_string(options.padding), " 0 or more"));
    }
  }
  if (options.groups < 1) {
    throw ValueError(message(who, ": groups is ", options.groups, ", but must be 1 or more"));
  }
}

ConvAttrs conv_attrs(const ConvOptions& options, const Dims& size = {0, 0}) {
  return {options.stride, options.padding, options.dilation, options.groups, size};
}

/// Half precision computes in float32; all tensors of a call have one dtype.
struct ConvTypes {
  DType result;
  DType compute;

  ConvTypes(const Tensor& a, const Tensor& b, const Tensor& bias)
      : result(promote(a.dtype(), b.dtype())) {
    if (bias.defined()) result = promote(result, bias.dtype());
    compute = result == DType::Float64 ? result : DType::Float32;
  }
};

Tensor run_conv(OpId op, const Tensor& a, const Tensor& b, const Tensor& bias,
                const ConvAttrs& attrs, const char* who) {
  const ConvTypes types(a, b, bias);
  const Tensor first = converted(a, types.compute, who);
  const Tensor second = converted(b, types.compute, who);
  Tensor out;
  if (bias.defined()) {
    const Tensor third = converted(bias, types.compute, who);
    out = run(op, {&first, &second, &third}, attrs, who);
  } else {
    out = run(op, {&first, &second}, attrs, who);
  }
  return converted(out, types.result, who);
}

/// Results along one axis. What the kernel copies, borders included, must have a size too.
std::int64_t conv_size(const OpCall& call, int axis, std::int64_t size, std::int64_t kernel) {
  const char* who = call.name();
  const auto& a = call.attrs.as<ConvAttrs>();
  const std::int64_t span = checked_add(checked_mul(a.dilation[axis], kernel - 1, who), 1, who);
  const std::int64_t padded = checked_add(size, checked_mul(2, a.padding[axis], who), who);
  if (padded < span) {
    throw ShapeError(message(who, ": ", describe_inputs(call), ": a window of ", kernel,
                             " places (dilation ", a.dilation[axis], ") spans ", span,
                             axis == 0 ? " rows" : " columns", ", but the image has ", size,
                             " and padding makes ", padded));
  }
  return (padded - span) / a.stride[axis] + 1;
}

void require_kernel(const OpCall& call, std::int64_t height, std::int64_t width) {
  if (height >= 1 && width >= 1) return;
  throw ShapeError(message(call.name(), ": filters of ", height, " x ", width,
                           " have no places; at least 1 x 1 is needed (", describe_inputs(call),
                           ")"));
}

void require_four(const OpCall& call, const Tensor& t, const char* what, const char* layout) {
  if (t.ndim() == 4) return;
  throw ShapeError(message(call.name(), ": ", what, " must be ", layout, ", not ", describe(t)));
}

void require_groups(const OpCall& call, std::int64_t channels, std::int64_t filters) {
  const std::int64_t groups = call.attrs.as<ConvAttrs>().groups;
  if (channels % groups == 0 && filters % groups == 0) return;
  throw ShapeError(message(call.name(), ": ", channels, " channels and ", filters,
                           " filters do not divide into ", groups, " groups (",
                           describe_inputs(call), ")"));
}

/// The border of zeros is part of what is copied.
void require_copyable(const OpCall& call, std::int64_t channels, std::int64_t height,
                      std::int64_t width) {
  const char* who = call.name();
  const Dims& padding = call.attrs.as<ConvAttrs>().padding;
  checked_numel({channels, checked_add(height, checked_mul(2, padding[0], who), who),
                 checked_add(width, checked_mul(2, padding[1], who), who)},
                DType::Float64, who);
}

/// That `g` is what conv2d gives for an image and filters of these sizes.
void require_result(const OpCall& call, const Tensor& g, std::int64_t images, std::int64_t filters,
                    const Dims& image, const Dims& kernel) {
  const Dims wanted = {images, filters, conv_size(call, 0, image[0], kernel[0]),
                       conv_size(call, 1, image[1], kernel[1])};
  if (g.shape() == wanted) return;
  throw ShapeError(message(call.name(), ": images of ", image[0], " x ", image[1],
                           " and filters of ", kernel[0], " x ", kernel[1], " give ",
                           to_string(wanted), ", but the gradient is ", describe(g)));
}

Tensor with_batch(const Tensor& x, bool batched) { return batched ? x : expand_dims(x, {0}); }
Tensor without_batch(const Tensor& x, bool batched) { return batched ? x : squeeze(x, 0); }

}  // namespace

// ---- conv2d

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const ConvOptions& options) {
  require_conv_dtype(x, "the input", "conv2d");
  require_conv_dtype(weight, "the weight", "conv2d");
  if (bias.defined()) require_conv_dtype(bias, "the bias", "conv2d");
  require_axes(x, 4, "the input", "[N, C, H, W]", "conv2d");
  require_options(options, 2, "conv2d");
  const bool batched = x.ndim() == 4;
  return without_batch(
      run_conv(OpId::conv2d, with_batch(x, batched), weight, bias, conv_attrs(options), "conv2d"),
      batched);
}

std::vector<OutputSpec> infer_conv2d(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  const Tensor& weight = *call.inputs[1];
  require_four(call, x, "the input", "[N, C, H, W]");
  require_four(call, weight, "the weight", "[O, C / groups, KH, KW]");
  const Dims& w = weight.shape();
  const std::int64_t channels = x.shape()[1];
  const std::int64_t groups = call.attrs.as<ConvAttrs>().groups;
  require_kernel(call, w[2], w[3]);
  require_groups(call, channels, w[0]);
  if (w[1] != channels / groups) {
    throw ShapeError(message(call.name(), ": the weight ", describe(weight), " has filters of ",
                             w[1], " channels, but the input ", describe(x), " has ", channels,
                             " in ", groups, groups == 1 ? " group" : " groups"));
  }
  if (call.inputs.size() > 2) {
    const Tensor& bias = *call.inputs[2];
    if (bias.ndim() != 1 || bias.shape()[0] != w[0]) {
      throw ShapeError(message(call.name(), ": the bias ", describe(bias), " must have one number",
                               " for each of the ", w[0], " filters of ", describe(weight)));
    }
  }
  const std::int64_t height = conv_size(call, 0, x.shape()[2], w[2]);
  const std::int64_t width = conv_size(call, 1, x.shape()[3], w[3]);
  require_copyable(call, channels, x.shape()[2], x.shape()[3]);
  return {{{x.shape()[0], w[0], height, width}, x.dtype()}};
}

// ---- Its gradients

Tensor conv2d_input(const Tensor& g, const Tensor& weight, const Dims& image,
                    const ConvOptions& options) {
  require_conv_dtype(g, "the gradient", "conv2d_input");
  require_conv_dtype(weight, "the weight", "conv2d_input");
  require_options(options, 2, "conv2d_input");
  require_numbers(image, 2, "the image's size", "conv2d_input");
  return run_conv(OpId::conv2d_input, g, weight, Tensor(), conv_attrs(options, image),
                  "conv2d_input");
}

std::vector<OutputSpec> infer_conv2d_input(const OpCall& call) {
  const Tensor& g = *call.inputs[0];
  const Tensor& weight = *call.inputs[1];
  require_four(call, g, "the gradient", "[N, O, H, W]");
  require_four(call, weight, "the weight", "[O, C / groups, KH, KW]");
  const Dims& w = weight.shape();
  const std::int64_t groups = call.attrs.as<ConvAttrs>().groups;
  const Dims image = call.attrs.as<ConvAttrs>().size;
  const std::int64_t channels = checked_mul(w[1], groups, call.name());
  require_kernel(call, w[2], w[3]);
  require_groups(call, channels, w[0]);
  const Dims result = {g.shape()[0], channels, image[0], image[1]};
  checked_numel(result, g.dtype(), call.name());
  require_result(call, g, g.shape()[0], w[0], image, {w[2], w[3]});
  require_copyable(call, channels, image[0], image[1]);
  return {{result, g.dtype()}};
}

Tensor conv2d_weight(const Tensor& x, const Tensor& g, const Dims& kernel,
                     const ConvOptions& options) {
  require_conv_dtype(x, "the input", "conv2d_weight");
  require_conv_dtype(g, "the gradient", "conv2d_weight");
  require_options(options, 2, "conv2d_weight");
  require_numbers(kernel, 2, "the filters' size", "conv2d_weight");
  return run_conv(OpId::conv2d_weight, x, g, Tensor(), conv_attrs(options, kernel),
                  "conv2d_weight");
}

std::vector<OutputSpec> infer_conv2d_weight(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  const Tensor& g = *call.inputs[1];
  require_four(call, x, "the input", "[N, C, H, W]");
  require_four(call, g, "the gradient", "[N, O, H, W]");
  const Dims kernel = call.attrs.as<ConvAttrs>().size;
  const std::int64_t groups = call.attrs.as<ConvAttrs>().groups;
  const std::int64_t channels = x.shape()[1];
  const std::int64_t filters = g.shape()[1];
  require_kernel(call, kernel[0], kernel[1]);
  require_groups(call, channels, filters);
  require_result(call, g, x.shape()[0], filters, {x.shape()[2], x.shape()[3]}, kernel);
  require_copyable(call, channels, x.shape()[2], x.shape()[3]);
  return {{{filters, channels / groups, kernel[0], kernel[1]}, x.dtype()}};
}

// ---- Made of these

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const ConvOptions& options) {
  require_conv_dtype(x, "the input", "conv1d");
  require_conv_dtype(weight, "the weight", "conv1d");
  if (bias.defined()) require_conv_dtype(bias, "the bias", "conv1d");
  require_axes(x, 3, "the input", "[N, C, L]", "conv1d");
  if (weight.ndim() != 3) {
    throw ShapeError(
        message("conv1d: the weight must be [O, C / groups, K], not ", describe(weight)));
  }
  require_options(options, 1, "conv1d");
  const bool batched = x.ndim() == 3;
  const Tensor out = run_conv(OpId::conv2d, expand_dims(with_batch(x, batched), {2}),
                              expand_dims(weight, {2}), bias,
                              conv_attrs({{1, options.stride[0]},
                                          {0, options.padding[0]},
                                          {1, options.dilation[0]},
                                          options.groups}),
                              "conv1d");
  return without_batch(squeeze(out, 2), batched);
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvOptions& options, const Dims& output_padding) {
  const char* who = "conv_transpose2d";
  require_conv_dtype(x, "the input", who);
  require_conv_dtype(weight, "the weight", who);
  if (bias.defined()) require_conv_dtype(bias, "the bias", who);
  require_axes(x, 4, "the input", "[N, C, H, W]", who);
  require_options(options, 2, who);
  require_numbers(output_padding, 2, "output_padding", who);
  if (weight.ndim() != 4) {
    throw ShapeError(
        message(who, ": the weight must be [C, O / groups, KH, KW], not ", describe(weight)));
  }
  const bool batched = x.ndim() == 4;
  const Tensor images = with_batch(x, batched);
  if (images.shape()[1] != weight.shape()[0]) {
    throw ShapeError(message(who, ": the input ", describe(x), " has ", images.shape()[1],
                             " channels, but the weight ", describe(weight), " takes ",
                             weight.shape()[0]));
  }
  const std::int64_t filters = checked_mul(weight.shape()[1], options.groups, who);
  if (bias.defined() && (bias.ndim() != 1 || bias.shape()[0] != filters)) {
    throw ShapeError(message(who, ": the bias ", describe(bias), " must have one number for each",
                             " of the ", filters, " channels of the result"));
  }
  Dims size = {0, 0};
  for (int i = 0; i < 2; ++i) {
    if (output_padding[i] < 0 || output_padding[i] >= options.stride[i]) {
      throw ValueError(message(who, ": output_padding ", to_string(output_padding),
                               " must be less than the stride ", to_string(options.stride),
                               ": it says which of the sizes that give the same result is meant"));
    }
    const std::int64_t pixels = images.shape()[2 + i];
    if (pixels == 0) throw ShapeError(message(who, ": the input ", describe(x), " has no pixels"));
    const std::int64_t kernel = weight.shape()[2 + i];
    const std::int64_t steps = checked_mul(pixels - 1, options.stride[i], who);
    const std::int64_t span = checked_mul(options.dilation[i], kernel - 1, who);
    const std::int64_t whole =
        checked_add(checked_add(steps, span, who), output_padding[i] + 1, who);
    size[i] = checked_add(whole, -checked_mul(2, options.padding[i], who), who);
    if (size[i] < 0) {
      throw ShapeError(message(who, ": padding ", to_string(options.padding), " leaves nothing of ",
                               whole, i == 0 ? " rows" : " columns", " (input ", describe(x),
                               ", weight ", describe(weight), ")"));
    }
  }
  Tensor out =
      run_conv(OpId::conv2d_input, images, weight, Tensor(), conv_attrs(options, size), who);
  if (bias.defined()) {
    out = out + reshape(converted(bias, promote(bias.dtype(), out.dtype()), who), {filters, 1, 1});
  }
  return without_batch(out, batched);
}

}  // namespace baregrad

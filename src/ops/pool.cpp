// Pooling: public functions and infer functions.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "baregrad/ops_conv.h"
#include "core/checked.h"
#include "core/history.h"
#include "core/message.h"
#include "core/rename.h"
#include "ops/dispatch.h"
#include "ops/infer.h"
#include "ops/internal_ops.h"
#include "parallel/interrupt.h"

namespace baregrad {

namespace {

void require_images(const Tensor& x, int batched, const char* layout, const char* who) {
  if (!x.defined()) throw ValueError(message(who, ": the tensor is undefined"));
  if (!is_floating(x.dtype())) {
    throw DTypeError(
        message(who, ": the input is ", describe(x),
                ", but only floating-point tensors are taken; convert it with astype"));
  }
  if (x.ndim() == batched || x.ndim() == batched - 1) return;
  throw ShapeError(message(who, ": the input must be ", layout,
                           " with or without its first axis, not ", describe(x)));
}

/// Stride and padding filled in, one number per axis.
PoolOptions completed(PoolOptions options, int axes, const char* who) {
  if (options.stride.empty()) options.stride = options.kernel;
  if (options.padding.empty()) options.padding = Dims(axes, 0);
  if (options.kernel.size() != axes || options.stride.size() != axes ||
      options.padding.size() != axes) {
    throw ValueError(message(who, ": kernel ", to_string(options.kernel), ", stride ",
                             to_string(options.stride), " and padding ", to_string(options.padding),
                             " must have ", axes, axes == 1 ? " number" : " numbers",
                             " each, one per axis"));
  }
  for (int i = 0; i < axes; ++i) {
    if (options.kernel[i] < 1 || options.stride[i] < 1) {
      throw ValueError(message(who, ": kernel ", to_string(options.kernel), " and stride ",
                               to_string(options.stride), " must be 1 or more"));
    }
    if (options.padding[i] < 0 || options.padding[i] > options.kernel[i] / 2) {
      throw ValueError(message(who, ": padding ", to_string(options.padding),
                               " must be between 0 and half of the kernel ",
                               to_string(options.kernel), ", or windows would lie outside"));
    }
  }
  return options;
}

PoolOptions as_two_axes(PoolOptions options) {
  options.kernel.insert(0, 1);
  options.stride.insert(0, 1);
  options.padding.insert(0, 0);
  return options;
}

PoolAttrs pool_attrs(const PoolOptions& options) {
  PoolAttrs attrs;
  attrs.kernel = options.kernel;
  attrs.stride = options.stride;
  attrs.padding = options.padding;
  attrs.ceil_mode = options.ceil_mode;
  attrs.count_include_pad = options.count_include_pad;
  return attrs;
}

DType compute_type(DType dtype) { return dtype == DType::Float64 ? dtype : DType::Float32; }

Tensor add_batch(const Tensor& x, bool batched) { return batched ? x : expand_dims(x, {0}); }
Tensor drop_batch(const Tensor& x, bool batched) { return batched ? x : squeeze(x, 0); }

/// Windows along one axis of an image.
std::int64_t pool_size(const OpCall& call, int axis, std::int64_t size) {
  const char* who = call.name();
  const auto& attrs = call.attrs.as<PoolAttrs>();
  const std::int64_t kernel = attrs.kernel[axis];
  const std::int64_t stride = attrs.stride[axis];
  const std::int64_t padding = attrs.padding[axis];
  const std::int64_t padded = checked_add(size, checked_mul(2, padding, who), who);
  const char* lines = axis == 0 ? " rows" : " columns";
  if (size < 1) {
    throw ShapeError(message(who, ": the input ", describe_inputs(call), " has no", lines));
  }
  const std::int64_t last = padded - kernel;
  if (last < 0 && !attrs.ceil_mode) {
    throw ShapeError(message(who, ": a window of ", kernel, lines, " does not fit into ", size,
                             " of ", describe_inputs(call), ", with padding ", padded));
  }
  std::int64_t count = 0;
  if (last >= 0) {
    count = last / stride + (attrs.ceil_mode && last % stride != 0 ? 1 : 0) + 1;
  } else {
    // Rounded up from below zero: one window that is cut off, where less than a stride is missing.
    count = -last < stride ? 1 : 0;
  }
  // The last window begins in the image or in the border before it.
  if (attrs.ceil_mode && count > 0 && count - 1 >= (size + padding - 1) / stride + 1) {
    --count;
  }
  if (count < 1) {
    throw ShapeError(message(who, ": a window of ", kernel, lines, " does not fit into ", size,
                             " of ", describe_inputs(call), ", with padding ", padded));
  }
  return count;
}

Dims pooled_shape(const OpCall& call, const Dims& image) {
  return {image[0], image[1], pool_size(call, 0, image[2]), pool_size(call, 1, image[3])};
}

std::pair<Tensor, Tensor> run_max_pool(const Tensor& x, const PoolOptions& options, bool positions,
                                       const char* who) {
  PoolAttrs attrs = pool_attrs(options);
  const Tensor images = converted(x, compute_type(x.dtype()), who);
  // The gradient goes back along the positions.
  const bool recorded = History::recording() && History::maybe_tracked(images);
  attrs.positions = positions || recorded;
  std::vector<Tensor> both = run_many(OpId::max_pool2d, {&images}, attrs, who);
  return {converted(both[0], x.dtype(), who), std::move(both[1])};
}

Tensor run_avg_pool(const Tensor& x, const PoolOptions& options, const char* who) {
  const Tensor images = converted(x, compute_type(x.dtype()), who);
  return converted(run(OpId::avg_pool2d, {&images}, pool_attrs(options), who), x.dtype(), who);
}

/// Means of `count` windows of nearly equal size along an axis.
/// More windows than elements: each holds one element or two, so that all are picked at once. The
/// number of windows is the caller's, and may be absurd: it must not become as many ops.
Tensor adaptive_stretch(const Tensor& x, int axis, std::int64_t count) {
  const std::int64_t size = x.shape()[axis];
  const Tensor window = arange(count, DType::Int64, x.device());
  const Tensor first = floor_divide(window * size, count);
  const Tensor last = floor_divide((window + 1) * size - 1, count);
  const Tensor a = take(x, first, axis);
  const Tensor b = take(x, last, axis);
  Dims line(x.ndim(), 1);
  line[axis] = count;
  return where(reshape(first == last, line), a, a * 0.5 + b * 0.5);
}

Tensor adaptive_mean(const Tensor& x, int axis, std::int64_t count) {
  const std::int64_t size = x.shape()[axis];
  if (size == count) return x;
  if (size % count == 0) {
    Dims shape = x.shape();
    shape[axis] = count;
    shape.insert(axis + 1, size / count);
    return mean(reshape(x, shape), axis + 1);
  }
  if (count > size) return adaptive_stretch(x, axis, count);
  // As slices: a product with a matrix of weights would let 0 * inf into every window.
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    parallel::poll_interrupt();
    const std::int64_t begin = i * size / count;
    const std::int64_t end = ((i + 1) * size + count - 1) / count;
    parts.push_back(mean(narrow(x, axis, begin, end - begin), axis, true));
  }
  return concat(parts, axis);
}

Tensor adaptive(const Tensor& x, const Dims& output, const char* layout, const char* who) {
  const int axes = output.size();
  require_images(x, axes + 2, layout, who);
  const int first = x.ndim() - axes;
  bool even = true;
  for (int i = 0; i < axes; ++i) {
    if (output[i] < 1) {
      throw ValueError(message(who, ": the output's size ", to_string(output),
                               " must be 1 or more along every axis"));
    }
    if (x.shape()[first + i] < 1) {
      throw ShapeError(message(who, ": the input ", describe(x), " has no pixels"));
    }
    checked_mul(x.shape()[first + i], checked_add(output[i], 1, who), who);
    even &= x.shape()[first + i] % output[i] == 0;
  }
  if (even && axes == 2) {  // both at once
    Dims shape = x.shape();
    for (int i = axes - 1; i >= 0; --i) {
      const std::int64_t size = shape[first + i];
      shape[first + i] = output[i];
      shape.insert(first + i + 1, size / output[i]);
    }
    return mean(reshape(x, shape), {first + 1, first + 3});
  }
  const Tensor full = converted(x, compute_type(x.dtype()), who);
  Tensor out = full;
  for (int i = axes - 1; i >= 0; --i) out = adaptive_mean(out, first + i, output[i]);
  return out.is_same(full) ? clone(x) : converted(out, x.dtype(), who);
}

}  // namespace

std::pair<Tensor, Tensor> max_pool2d_with_indices(const Tensor& x, const PoolOptions& options) {
  const char* who = "max_pool2d_with_indices";
  require_images(x, 4, "[N, C, H, W]", who);
  const bool batched = x.ndim() == 4;
  const auto [values, positions] =
      run_max_pool(add_batch(x, batched), completed(options, 2, who), true, who);
  return {drop_batch(values, batched), drop_batch(positions, batched)};
}

Tensor max_pool2d(const Tensor& x, const PoolOptions& options) {
  require_images(x, 4, "[N, C, H, W]", "max_pool2d");
  const bool batched = x.ndim() == 4;
  return drop_batch(
      run_max_pool(add_batch(x, batched), completed(options, 2, "max_pool2d"), false, "max_pool2d")
          .first,
      batched);
}

std::vector<OutputSpec> infer_max_pool2d(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  const Dims shape = pooled_shape(call, x.shape());
  return {{shape, x.dtype()},
          {call.attrs.as<PoolAttrs>().positions ? shape : Dims{0}, DType::Int64}};
}

Tensor avg_pool2d(const Tensor& x, const PoolOptions& options) {
  require_images(x, 4, "[N, C, H, W]", "avg_pool2d");
  const bool batched = x.ndim() == 4;
  return drop_batch(
      run_avg_pool(add_batch(x, batched), completed(options, 2, "avg_pool2d"), "avg_pool2d"),
      batched);
}

std::vector<OutputSpec> infer_avg_pool2d(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  return {{pooled_shape(call, x.shape()), x.dtype()}};
}

Tensor avg_pool2d_backward(const Tensor& g, const Dims& image, const PoolOptions& options) {
  const char* who = "avg_pool2d_backward";
  require_images(g, 4, "[N, C, H, W]", who);
  if (image.size() != 2) {
    throw ValueError(message(who, ": the image's size is ", to_string(image),
                             ", but a height and a width are needed"));
  }
  PoolAttrs attrs = pool_attrs(completed(options, 2, who));
  attrs.image = image;
  const bool batched = g.ndim() == 4;
  const Tensor full = converted(add_batch(g, batched), compute_type(g.dtype()), who);
  return drop_batch(converted(run(OpId::avg_pool2d_backward, {&full}, attrs, who), g.dtype(), who),
                    batched);
}

std::vector<OutputSpec> infer_avg_pool2d_backward(const OpCall& call) {
  const Tensor& g = *call.inputs[0];
  const Dims& size = call.attrs.as<PoolAttrs>().image;
  const Dims image = {g.shape()[0], g.shape()[1], size[0], size[1]};
  const Dims wanted = pooled_shape(call, image);
  if (!(g.shape() == wanted)) {
    throw ShapeError(message(call.name(), ": images ", to_string(image), " are pooled to ",
                             to_string(wanted), ", but the gradient is ", describe(g)));
  }
  return {{image, g.dtype()}};
}

// ---- Made of these

Tensor max_pool1d(const Tensor& x, const PoolOptions& options) {
  require_images(x, 3, "[N, C, L]", "max_pool1d");
  const bool batched = x.ndim() == 3;
  const Tensor images = expand_dims(add_batch(x, batched), {2});
  const PoolOptions two = as_two_axes(completed(options, 1, "max_pool1d"));
  return drop_batch(squeeze(run_max_pool(images, two, false, "max_pool1d").first, 2), batched);
}

Tensor avg_pool1d(const Tensor& x, const PoolOptions& options) {
  require_images(x, 3, "[N, C, L]", "avg_pool1d");
  const bool batched = x.ndim() == 3;
  const Tensor images = expand_dims(add_batch(x, batched), {2});
  const PoolOptions two = as_two_axes(completed(options, 1, "avg_pool1d"));
  return drop_batch(squeeze(run_avg_pool(images, two, "avg_pool1d"), 2), batched);
}

Tensor adaptive_avg_pool2d(const Tensor& x, const Dims& output) {
  if (output.size() != 2) {
    throw ValueError(message("adaptive_avg_pool2d: the output's size is ", to_string(output),
                             ", but a height and a width are needed"));
  }
  constexpr const char* kWho = "adaptive_avg_pool2d";
  return in_name_of(kWho, [&] { return adaptive(x, output, "[N, C, H, W]", kWho); });
}

Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t output) {
  constexpr const char* kWho = "adaptive_avg_pool1d";
  return in_name_of(kWho, [&] { return adaptive(x, {output}, "[N, C, L]", kWho); });
}

}  // namespace baregrad

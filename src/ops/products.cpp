// Products over matrices: matmul and what is made of it.
#include <algorithm>
#include <array>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/history.h"
#include "core/message.h"
#include "core/rename.h"
#include "ops/activation_name.h"
#include "ops/dispatch.h"
#include "ops/infer.h"
#include "ops/internal_ops.h"
#include "ops/positions.h"
#include "ops/widened.h"

namespace baregrad {

namespace {

[[noreturn]] void throw_inner(const OpCall& call, const Tensor& a, const Tensor& b, int a_axis,
                              int b_axis) {
  throw ShapeError(message(call.name(), ": cannot multiply ", describe(a), " by ", describe(b),
                           ": inner sizes ", a.shape()[a_axis], " and ", b.shape()[b_axis],
                           " differ (axis ", a_axis, " of the first, axis ", b_axis,
                           " of the second)"));
}

/// The shape without its last `count` axes.
Dims leading(const Tensor& t, int count = 2) {
  Dims dims;
  for (int i = 0; i < t.ndim() - count; ++i) dims.push_back(t.shape()[i]);
  return dims;
}

Dims infer_matmul(const OpCall& call) {
  const Tensor& a = *call.inputs[0];
  const Tensor& b = *call.inputs[1];
  if (a.ndim() == 0 || b.ndim() == 0) {
    throw ShapeError(message(call.name(), ": cannot multiply ", describe(a), " by ", describe(b),
                             ": each needs at least one axis; use multiply for numbers"));
  }
  const int b_axis = b.ndim() == 1 ? 0 : b.ndim() - 2;
  if (a.shape().back() != b.shape()[b_axis]) throw_inner(call, a, b, a.ndim() - 1, b_axis);
  Dims shape;
  if (!broadcast_shapes(leading(a), leading(b), shape)) {
    throw ShapeError(message(call.name(), ": cannot multiply ", describe(a), " by ", describe(b),
                             ": their leading axes ", to_string(leading(a)), " and ",
                             to_string(leading(b)), " do not broadcast"));
  }
  if (a.ndim() > 1) shape.push_back(a.shape()[a.ndim() - 2]);
  if (b.ndim() > 1) shape.push_back(b.shape().back());
  return shape;
}

/// The axis to sum over has been moved to the end of both.
Dims infer_vecdot(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  const Tensor& y = *call.inputs[1];
  if (x.shape().back() != y.shape().back()) {
    throw ShapeError(message(call.name(), ": sizes ", x.shape().back(), " and ", y.shape().back(),
                             " differ along the axis to sum over, moved to the end in ",
                             describe(x), " and ", describe(y)));
  }
  Dims shape;
  if (broadcast_shapes(leading(x, 1), leading(y, 1), shape)) return shape;
  throw ShapeError(message(call.name(), ": ", describe(x), " and ", describe(y),
                           " do not broadcast but for the axis to sum over, moved to the end"));
}

Dims infer_linear(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  const Tensor& weight = *call.inputs[1];
  if (weight.ndim() != 2) {
    throw ShapeError(
        message(call.name(), ": the weight ", describe(weight), " must have two axes, [out, in]"));
  }
  if (x.ndim() == 0 || x.shape().back() != weight.shape()[1]) {
    throw ShapeError(message(call.name(), ": the last axis of x ", describe(x),
                             " must have the size of the weight's last axis: weight ",
                             describe(weight)));
  }
  if (call.inputs.size() == 3) {
    const Tensor& bias = *call.inputs[2];
    if (bias.ndim() != 1 || bias.shape()[0] != weight.shape()[0]) {
      throw ShapeError(message(call.name(), ": the bias ", describe(bias), " must be [",
                               weight.shape()[0], "], one number per row of the weight ",
                               describe(weight)));
    }
  }
  const auto activation = call.attrs.or_default<ProductAttrs>().activation;
  const DType dtype = infer_elementwise_types(call).compute;
  const bool works = activation == Activation::None   ? true
                     : activation == Activation::Relu ? !is_bool(dtype)
                                                      : is_floating(dtype);
  if (!works) {
    throw DTypeError(message(call.name(), ": no ", name_of(activation), " of a ", name(dtype),
                             " product, of ", describe_inputs(call)));
  }
  Dims shape = x.shape();
  shape.back() = weight.shape()[0];
  return shape;
}

Dims infer_addmm(const OpCall& call) {
  const Tensor& added = *call.inputs[0];
  const Tensor& a = *call.inputs[1];
  const Tensor& b = *call.inputs[2];
  if (a.ndim() != 2 || b.ndim() != 2) {
    throw ShapeError(message(call.name(), ": a ", describe(a), " and b ", describe(b),
                             " must be matrices, of two axes each"));
  }
  if (a.shape()[1] != b.shape()[0]) throw_inner(call, a, b, 1, 0);
  const Dims shape{a.shape()[0], b.shape()[1]};
  Dims broadcast;
  if (!broadcast_shapes(added.shape(), shape, broadcast) || !(broadcast == shape)) {
    throw ShapeError(message(call.name(), ": ", describe(added),
                             " does not broadcast to the shape of the product, ",
                             to_string(shape)));
  }
  return shape;
}

Tensor activated(const Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::Gelu:
      return gelu(x);
    case Activation::GeluTanh:
      return gelu_tanh(x);
    case Activation::Silu:
      return silu(x);
    case Activation::Relu:
      return relu(x);
    case Activation::None:
      break;
  }
  return x;
}

void require_ndim(const Tensor& x, const char* what, int ndim, const char* who) {
  require_defined(x, what, who);
  if (x.ndim() == ndim) return;
  throw ShapeError(message(who, ": ", what, " ", describe(x), " must have ", ndim, " axes"));
}

/// The axes of `x` not in `taken`, in order.
Dims others(const Tensor& x, const Dims& taken) {
  Dims rest;
  for (int i = 0; i < x.ndim(); ++i) {
    if (std::find(taken.begin(), taken.end(), i) == taken.end()) rest.push_back(i);
  }
  return rest;
}

Dims joined(const Dims& a, const Dims& b) {
  Dims all = a;
  for (const std::int64_t x : b) all.push_back(x);
  return all;
}

Dims sizes(const Tensor& x, const Dims& axes) {
  Dims out;
  for (const std::int64_t axis : axes) out.push_back(x.shape()[static_cast<int>(axis)]);
  return out;
}

std::int64_t product_of(const Dims& dims) {
  std::int64_t n = 1;
  for (const std::int64_t size : dims) n *= size;
  return n;
}

Dims normalized(const Dims& axes, const Tensor& x, const char* who) {
  Dims out;
  for (const std::int64_t axis : axes) out.push_back(normalize_axis(axis, x.ndim(), who));
  axes_mask(out, x.ndim(), who);  // refuses an axis given twice
  return out;
}

}  // namespace

Dims infer_product(const OpCall& call) {
  switch (call.op) {
    case OpId::vecdot:
      return infer_vecdot(call);
    case OpId::linear:
      return infer_linear(call);
    case OpId::addmm:
      return infer_addmm(call);
    default:
      return infer_matmul(call);
  }
}

Tensor matmul(const Tensor& a, const Tensor& b) { return run(OpId::matmul, {&a, &b}); }

const Tensor& matmul_out(const Tensor& out, const Tensor& a, const Tensor& b, bool accumulate) {
  ProductAttrs attrs;
  attrs.accumulate = accumulate;
  run_into(OpId::matmul, {&a, &b}, out, attrs, "matmul_out");
  return out;
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  const ProductAttrs attrs{activation};
  const bool fused = activation == Activation::None || activation == Activation::Relu;
  if (!fused && History::recording()) {
    // The gradient of these needs what they were given: recorded, they are ops of their own.
    bool tracked = false;
    for (const Tensor* t : {&x, &weight, &bias}) {
      tracked |= t->defined() && History::maybe_tracked(*t);
    }
    if (tracked) return activated(linear(x, weight, bias), activation);
  }
  if (!bias.defined()) return run(OpId::linear, {&x, &weight}, attrs);
  return run(OpId::linear, {&x, &weight, &bias}, attrs);
}

Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta,
             const Scalar& alpha) {
  const bool plain_sum = beta.to_double() == 1.0;
  const bool plain_product = alpha.to_double() == 1.0;
  if (plain_sum && plain_product) return run(OpId::addmm, {&x, &a, &b});
  // Refuse what does not fit before anything is computed.
  const std::array<const Tensor*, 3> inputs{&x, &a, &b};
  for (const Tensor* t : inputs) require_defined(*t, "an input", "addmm");
  infer_addmm({OpId::addmm, inputs});
  return in_name_of("addmm", [&] {
    const bool without_x = beta.to_double() == 0.0;
    const Tensor none;
    const Widened wide({without_x ? &none : &x, &a, &b});
    Tensor product = matmul(wide(a), wide(b));
    if (!plain_product) product = multiply(product, alpha);
    // As in PyTorch: NaN in x does not pass a beta of 0.
    if (without_x) return wide.rounded(product);
    return wide.rounded(add(plain_sum ? wide(x) : multiply(wide(x), beta), product));
  });
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  require_ndim(a, "a", 3, "bmm");
  require_ndim(b, "b", 3, "bmm");
  if (a.shape()[0] != b.shape()[0]) {
    throw ShapeError(message("bmm: ", describe(a), " and ", describe(b),
                             " differ in the number of matrices; matmul broadcasts"));
  }
  return run(OpId::matmul, {&a, &b}, {}, "bmm");
}

Tensor outer(const Tensor& x, const Tensor& y) {
  require_ndim(x, "x", 1, "outer");
  require_ndim(y, "y", 1, "outer");
  const Tensor column = expand_dims(x, {1});
  return run(OpId::multiply, {&column, &y}, {}, "outer");
}

Tensor vecdot(const Tensor& x, const Tensor& y, std::int64_t axis) {
  require_defined(x, "x", "vecdot");
  require_defined(y, "y", "vecdot");
  const Tensor a = moveaxis(x, {normalize_axis(axis, x.ndim(), "vecdot")}, {-1});
  const Tensor b = moveaxis(y, {normalize_axis(axis, y.ndim(), "vecdot")}, {-1});
  return run(OpId::vecdot, {&a, &b});
}

Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& a_axes, const Dims& b_axes) {
  require_defined(a, "a", "tensordot");
  require_defined(b, "b", "tensordot");
  if (a_axes.size() != b_axes.size()) {
    throw ShapeError(message("tensordot: ", a_axes.size(), " axes of a and ", b_axes.size(),
                             " of b do not pair up"));
  }
  const Dims a_summed = normalized(a_axes, a, "tensordot");
  const Dims b_summed = normalized(b_axes, b, "tensordot");
  for (int i = 0; i < a_summed.size(); ++i) {
    const int p = static_cast<int>(a_summed[i]);
    const int q = static_cast<int>(b_summed[i]);
    if (a.shape()[p] == b.shape()[q]) continue;
    throw ShapeError(message("tensordot: sizes ", a.shape()[p], " and ", b.shape()[q],
                             " differ (axis ", p, " of ", describe(a), ", axis ", q, " of ",
                             describe(b), ")"));
  }
  const Dims a_kept = others(a, a_summed);
  const Dims b_kept = others(b, b_summed);
  const std::int64_t k = product_of(sizes(a, a_summed));
  const Tensor left =
      reshape(permute_dims(a, joined(a_kept, a_summed)), {product_of(sizes(a, a_kept)), k});
  const Tensor right =
      reshape(permute_dims(b, joined(b_summed, b_kept)), {k, product_of(sizes(b, b_kept))});
  const Dims shape = joined(sizes(a, a_kept), sizes(b, b_kept));
  return reshape(run(OpId::matmul, {&left, &right}, {}, "tensordot"), shape);
}

Tensor tensordot(const Tensor& a, const Tensor& b, std::int64_t axes) {
  require_defined(a, "a", "tensordot");
  require_defined(b, "b", "tensordot");
  if (axes < 0 || axes > a.ndim() || axes > b.ndim()) {
    throw ValueError(message("tensordot: cannot sum over ", axes, " axes of ", describe(a), " and ",
                             describe(b)));
  }
  Dims a_axes;
  Dims b_axes;
  for (std::int64_t i = 0; i < axes; ++i) {
    a_axes.push_back(a.ndim() - axes + i);
    b_axes.push_back(i);
  }
  return tensordot(a, b, a_axes, b_axes);
}

}  // namespace baregrad

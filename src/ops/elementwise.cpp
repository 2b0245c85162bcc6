// Public elementwise functions: regular ones straight from ops.def, the rest written out.
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/message.h"
#include "core/number_text.h"
#include "ops/dispatch.h"

namespace baregrad {

namespace {

/// An operand as a tensor. A number becomes a 0-d tensor of the dtype it takes beside `partner`.
class ResolvedOperand {
 public:
  ResolvedOperand(const Operand& operand, const Tensor* partner, const char* who)
      : tensor_(operand.tensor()) {
    if (tensor_ != nullptr) return;
    const Scalar& value = operand.scalar();
    DType dtype = default_dtype(value);
    if (partner != nullptr && partner->defined()) dtype = weak_dtype(value, partner->dtype());
    own_ = Tensor::scalar(value, dtype, who);
    tensor_ = &own_;
  }
  ResolvedOperand(const ResolvedOperand&) = delete;
  ResolvedOperand& operator=(const ResolvedOperand&) = delete;
  const Tensor* get() const noexcept { return tensor_; }

 private:
  const Tensor* tensor_;
  Tensor own_;
};

/// op(x, y) where one is a number and the short way exists; undefined else.
Tensor with_number(OpId op, const Operand& x, const Operand& y) {
  if ((x.tensor() == nullptr) == (y.tensor() == nullptr)) return {};
  return x.tensor() != nullptr ? run_with_number(op, *x.tensor(), y.scalar(), false)
                               : run_with_number(op, *y.tensor(), x.scalar(), true);
}

Tensor binary(OpId op, const Operand& x, const Operand& y) {
  if (x.tensor() != nullptr && y.tensor() != nullptr) return run(op, {x.tensor(), y.tensor()});
  if (Tensor out = with_number(op, x, y); out.defined()) return out;
  const ResolvedOperand a(x, y.tensor(), op_name(op));
  const ResolvedOperand b(y, x.tensor(), op_name(op));
  return run(op, {a.get(), b.get()});
}

const Tensor& binary_into(OpId op, const Tensor& x, const Operand& y, const char* who) {
  if (y.tensor() != nullptr) {
    run_into(op, {&x, y.tensor()}, x, AttrsRef(), who);
  } else {
    const ResolvedOperand b(y, &x, who);
    run_into(op, {&x, b.get()}, x, AttrsRef(), who);
  }
  return x;
}

constexpr TiesAttrs kToFirst{true};

void check_softplus(double beta, const char* who) {
  if (!(beta > 0.0))
    throw ValueError(message(who, ": beta must be above 0, not ", number_text(beta)));
}

}  // namespace

#define BG_UNARY(name, rule, doc)                                \
  Tensor name(const Tensor& x) { return run(OpId::name, {&x}); } \
  const Tensor& name##_(const Tensor& x) {                       \
    run_into(OpId::name, {&x}, x, AttrsRef(), #name "_");        \
    return x;                                                    \
  }
#define BG_UNARY_PARAM(name, rule, doc)  // written out below
#define BG_PREDICATE(name, rule, doc) \
  Tensor name(const Tensor& x) { return run(OpId::name, {&x}); }
#define BG_BINARY(name, rule, doc)                                                     \
  Tensor name(const Operand& x, const Operand& y) { return binary(OpId::name, x, y); } \
  const Tensor& name##_(const Tensor& x, const Operand& y) {                           \
    return binary_into(OpId::name, x, y, #name "_");                                   \
  }
#define BG_COMPARE(name, rule, doc) \
  Tensor name(const Operand& x, const Operand& y) { return binary(OpId::name, x, y); }
#include "ops/ops.def"

Tensor leaky_relu(const Tensor& x, double slope) {
  return run(OpId::leaky_relu, {&x}, NumbersAttrs{{slope}});
}
const Tensor& leaky_relu_(const Tensor& x, double slope) {
  run_into(OpId::leaky_relu, {&x}, x, NumbersAttrs{{slope}}, "leaky_relu_");
  return x;
}

Tensor elu(const Tensor& x, double alpha) { return run(OpId::elu, {&x}, NumbersAttrs{{alpha}}); }
const Tensor& elu_(const Tensor& x, double alpha) {
  run_into(OpId::elu, {&x}, x, NumbersAttrs{{alpha}}, "elu_");
  return x;
}

Tensor softplus(const Tensor& x, double beta, double threshold) {
  check_softplus(beta, "softplus");
  return run(OpId::softplus, {&x}, NumbersAttrs{{beta, threshold}});
}
const Tensor& softplus_(const Tensor& x, double beta, double threshold) {
  check_softplus(beta, "softplus_");
  run_into(OpId::softplus, {&x}, x, NumbersAttrs{{beta, threshold}}, "softplus_");
  return x;
}

Tensor where(const Tensor& condition, const Operand& x, const Operand& y) {
  const ResolvedOperand a(x, y.tensor(), "where");
  const ResolvedOperand b(y, x.tensor(), "where");
  return run(OpId::where, {&condition, a.get(), b.get()});
}

// A missing bound is no bound, not the greatest number of the dtype: one-sided clips are the
// maximum or minimum, which pass NaN on just the same. At a tie their gradient goes to x alone.
Tensor clip(const Tensor& x, std::optional<Operand> low, std::optional<Operand> high) {
  if (!low && !high) return run(OpId::positive, {&x}, {}, "clip");
  if (!low || !high) {
    const ResolvedOperand bound(low ? *low : *high, &x, "clip");
    return run(low ? OpId::maximum : OpId::minimum, {&x, bound.get()}, kToFirst, "clip");
  }
  const ResolvedOperand a(*low, &x, "clip");
  const ResolvedOperand b(*high, &x, "clip");
  return run(OpId::clip, {&x, a.get(), b.get()});
}
const Tensor& clip_(const Tensor& x, std::optional<Operand> low, std::optional<Operand> high) {
  if (!low && !high) {
    run_into(OpId::positive, {&x}, x, {}, "clip_");
  } else if (!low || !high) {
    const ResolvedOperand bound(low ? *low : *high, &x, "clip_");
    run_into(low ? OpId::maximum : OpId::minimum, {&x, bound.get()}, x, kToFirst, "clip_");
  } else {
    const ResolvedOperand a(*low, &x, "clip_");
    const ResolvedOperand b(*high, &x, "clip_");
    run_into(OpId::clip, {&x, a.get(), b.get()}, x, AttrsRef(), "clip_");
  }
  return x;
}

Tensor lerp(const Tensor& x, const Operand& y, const Operand& weight) {
  const ResolvedOperand b(y, &x, "lerp");
  const ResolvedOperand w(weight, &x, "lerp");
  return run(OpId::lerp, {&x, b.get(), w.get()});
}
const Tensor& lerp_(const Tensor& x, const Operand& y, const Operand& weight) {
  const ResolvedOperand b(y, &x, "lerp_");
  const ResolvedOperand w(weight, &x, "lerp_");
  run_into(OpId::lerp, {&x, b.get(), w.get()}, x, AttrsRef(), "lerp_");
  return x;
}

Tensor addcmul(const Tensor& x, const Operand& y, const Operand& z, double value) {
  const ResolvedOperand b(y, &x, "addcmul");
  const ResolvedOperand c(z, &x, "addcmul");
  return run(OpId::addcmul, {&x, b.get(), c.get()}, NumbersAttrs{{value}});
}
const Tensor& addcmul_(const Tensor& x, const Operand& y, const Operand& z, double value) {
  const ResolvedOperand b(y, &x, "addcmul_");
  const ResolvedOperand c(z, &x, "addcmul_");
  run_into(OpId::addcmul, {&x, b.get(), c.get()}, x, NumbersAttrs{{value}}, "addcmul_");
  return x;
}

}  // namespace baregrad

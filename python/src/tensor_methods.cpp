// Elementwise methods: one line per row of the op table, new results and in place, and PyTorch's
// shorter names for some.
#include "tensor_methods.h"

#include <string>
#include <string_view>

#include "baregrad/ops.h"
#include "call.h"
#include "core/rename.h"
#include "functions.h"
#include "tensor_slots.h"

namespace baregrad::python {
namespace {

using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Operand&, const Operand&);
using UnaryInPlace = const Tensor& (*)(const Tensor&);
using BinaryInPlace = const Tensor& (*)(const Tensor&, const Operand&);

void def_unary(TensorClass& tensor, const char* name, Unary op, const char* doc) {
  tensor.def(
      name, [op](const Tensor& x) { return unlocked(x.numel(), [&] { return op(x); }); }, doc);
}

void def_binary(TensorClass& tensor, const char* name, Binary op, const char* doc) {
  tensor.def(
      name,
      [op](const Tensor& x, const Operand& other) {
        return unlocked(work_of(x, other), [&] { return op(x, other); });
      },
      nb::arg("other"), doc);
}

/// Every in-place method returns the object it was called on.
template <class Work>
Self in_place(nb::object self, const Work& work) {
  const Tensor x = initialised(self.ptr());
  unlocked(x.numel(), [&] { work(x); });
  return nb::borrow<Self>(self);
}

void def_unary_(TensorClass& tensor, const char* name, UnaryInPlace op, const char* doc) {
  tensor.def(
      name, [op](nb::object self) { return in_place(std::move(self), op); },
      (std::string(doc) + "; in place").c_str());
}

void def_binary_(TensorClass& tensor, const char* name, BinaryInPlace op, const char* doc) {
  tensor.def(
      name,
      [op](nb::object self, const Operand& other) {
        return in_place(std::move(self), [&](const Tensor& x) { op(x, other); });
      },
      nb::arg("other"), (std::string(doc) + "; in place").c_str());
}

/// x.add(other, alpha=a): x + a * other, as PyTorch's optimizers use it.
void def_scaled(TensorClass& tensor, const char* name, Binary op) {
  tensor.def(
      name,
      [op, name](const Tensor& x, const Operand& other, const Scalar& alpha) {
        return unlocked(work_of(x, other), [&] {
          return in_name_of(name, [&] { return scaled(op, x, other, alpha); });
        });
      },
      nb::arg("other"), nb::kw_only(), nb::arg("alpha"));
}
void def_scaled_(TensorClass& tensor, const char* name, BinaryInPlace op) {
  tensor.def(
      name,
      [op, name](nb::object self, const Operand& other, const Scalar& alpha) {
        return in_place(std::move(self), [&](const Tensor& x) {
          in_name_of(name, [&] { scaled_into(op, x, other, alpha); });
        });
      },
      nb::arg("other"), nb::kw_only(), nb::arg("alpha"));
}

/// Gradients of activations are internal ops.
bool is_internal(std::string_view name) { return name.ends_with("_backward"); }

void bind_table(TensorClass& tensor) {
#define BG_UNARY(name, rule, doc)       \
  def_unary(tensor, #name, &name, doc); \
  def_unary_(tensor, #name "_", &name##_, doc);
#define BG_UNARY_PARAM(name, rule, doc)
#define BG_PREDICATE(name, rule, doc) def_unary(tensor, #name, &name, doc);
#define BG_COMPARE(name, rule, doc) def_binary(tensor, #name, &name, doc);
#define BG_BINARY(name, rule, doc)                 \
  if (!is_internal(#name)) {                       \
    def_binary(tensor, #name, &name, doc);         \
    def_binary_(tensor, #name "_", &name##_, doc); \
  }
#include "ops/ops.def"
}

void bind_parametric(TensorClass& tensor) {
  tensor
      .def(
          "leaky_relu",
          [](const Tensor& x, double slope) {
            return unlocked(x.numel(), [&] { return leaky_relu(x, slope); });
          },
          nb::arg("negative_slope") = 0.01, "x where x > 0, else negative_slope * x")
      .def(
          "elu",
          [](const Tensor& x, double alpha) {
            return unlocked(x.numel(), [&] { return elu(x, alpha); });
          },
          nb::arg("alpha") = 1.0, "x where x > 0, else alpha * expm1(x)")
      .def(
          "softplus",
          [](const Tensor& x, double beta, double threshold) {
            return unlocked(x.numel(), [&] { return softplus(x, beta, threshold); });
          },
          nb::arg("beta") = 1.0, nb::arg("threshold") = 20.0,
          "log(1 + exp(beta * x)) / beta; x above the threshold");
}

void bind_ternary(TensorClass& tensor) {
  tensor
      .def(
          "clip",
          [](const Tensor& x, std::optional<Operand> low, std::optional<Operand> high) {
            return unlocked(x.numel(), [&] { return clip(x, low, high); });
          },
          nb::arg("min") = nb::none(), nb::arg("max") = nb::none(),
          R"(x limited to [min, max]; NaN stays NaN.

>>> bg.arange(5).clip(1, 3)
tensor([1, 1, 2, 3, 3]))")
      .def(
          "clip_",
          [](nb::object self, std::optional<Operand> low, std::optional<Operand> high) {
            return in_place(std::move(self), [&](const Tensor& x) { clip_(x, low, high); });
          },
          nb::arg("min") = nb::none(), nb::arg("max") = nb::none(),
          "x limited to [min, max]; in place")
      .def(
          "lerp",
          [](const Tensor& x, const Operand& end, const Operand& weight) {
            return unlocked(work_of(x, end), [&] { return lerp(x, end, weight); });
          },
          nb::arg("end"), nb::arg("weight"), "x + weight * (end - x)")
      .def(
          "lerp_",
          [](nb::object self, const Operand& end, const Operand& weight) {
            return in_place(std::move(self), [&](const Tensor& x) { lerp_(x, end, weight); });
          },
          nb::arg("end"), nb::arg("weight"), "x + weight * (end - x); in place")
      .def(
          "addcmul",
          [](const Tensor& x, const Operand& y, const Operand& z, double value) {
            return unlocked(work_of(y, z), [&] { return addcmul(x, y, z, value); });
          },
          nb::arg("tensor1"), nb::arg("tensor2"), nb::kw_only(), nb::arg("value") = 1.0,
          "x + value * tensor1 * tensor2")
      .def(
          "addcmul_",
          [](nb::object self, const Operand& y, const Operand& z, double value) {
            return in_place(std::move(self), [&](const Tensor& x) { addcmul_(x, y, z, value); });
          },
          nb::arg("tensor1"), nb::arg("tensor2"), nb::kw_only(), nb::arg("value") = 1.0,
          "x + value * tensor1 * tensor2; in place");
}

void bind_writing(TensorClass& tensor) {
  tensor
      .def(
          "fill_",
          [](nb::object self, const Scalar& value) {
            return in_place(std::move(self), [&](const Tensor& x) { fill_(x, value); });
          },
          nb::arg("value"), "Sets every element to one number.")
      .def(
          "zero_",
          [](nb::object self) {
            return in_place(std::move(self),
                            [](const Tensor& x) { in_name_of("zero_", [&] { fill_(x, 0); }); });
          },
          "Sets every element to 0.")
      .def(
          "copy_",
          [](nb::object self, const Tensor& source) {
            return in_place(std::move(self), [&](const Tensor& x) { copy_(x, source); });
          },
          nb::arg("src"), "Takes the elements of src, broadcast and converted to this dtype.")
      .def(
          "masked_fill",
          [](const Tensor& x, const Tensor& mask, const Operand& value) {
            return unlocked(x.numel(), [&] { return masked_fill(x, mask, value); });
          },
          nb::arg("mask"), nb::arg("value"), "A copy with `value` where the mask holds.")
      .def(
          "masked_fill_",
          [](nb::object self, const Tensor& mask, const Operand& value) {
            return in_place(std::move(self),
                            [&](const Tensor& x) { masked_fill_(x, mask, value); });
          },
          nb::arg("mask"), nb::arg("value"), "Sets what the mask holds for; in place.")
      .def(
          "where",
          [](const Tensor& x, const Tensor& condition, const Operand& other) {
            return unlocked(work_of(x, other), [&] { return where(condition, x, other); });
          },
          nb::arg("condition"), nb::arg("other"), "x where the condition holds, else other.");
}

struct MethodAlias {
  const char* name;
  const char* of;
};
constexpr MethodAlias kAliases[] = {
    {"absolute", "abs"},   {"neg", "negative"},     {"sub", "subtract"},
    {"mul", "multiply"},   {"div", "divide"},       {"true_divide", "divide"},
    {"clamp", "clip"},     {"clamp_", "clip_"},     {"eq", "equal"},
    {"ne", "not_equal"},   {"lt", "less"},          {"le", "less_equal"},
    {"gt", "greater"},     {"ge", "greater_equal"}, {"bitwise_not", "bitwise_invert"},
    {"neg_", "negative_"}, {"sub_", "subtract_"},   {"mul_", "multiply_"},
    {"div_", "divide_"},   {"arctan2", "atan2"},    {"bitwise_not_", "bitwise_invert_"}};

}  // namespace

void bind_elementwise_methods(TensorClass& tensor) {
  bind_table(tensor);
  bind_parametric(tensor);
  bind_ternary(tensor);
  bind_writing(tensor);
  def_scaled(tensor, "add", &add);
  def_scaled(tensor, "subtract", &subtract);
  def_scaled_(tensor, "add_", &add_);
  def_scaled_(tensor, "subtract_", &subtract_);
  for (const MethodAlias& alias : kAliases) tensor.attr(alias.name) = tensor.attr(alias.of);
}

}  // namespace baregrad::python

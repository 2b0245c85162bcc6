// Elementwise functions: one line per row of the op table, and functions with more arguments.
#include <string>
#include <string_view>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/message.h"
#include "functions.h"

namespace baregrad::python {
namespace {

using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Operand&, const Operand&);

/// Rows without a Python function of their own: gradients of activations, and the two forms of
/// gelu, which are one function with an argument.
bool is_public(std::string_view name) {
  return !name.ends_with("_backward") && name != "gelu" && name != "gelu_tanh";
}

void def_unary(nb::module_& m, const char* name, Unary op, const char* doc) {
  if (!is_public(name)) return;
  m.def(
      name, [op](const Tensor& x) { return unlocked(x.numel(), [&] { return op(x); }); }, nb::arg(),
      nb::sig(signature(name, "x: Tensor, /").c_str()), documented(name, doc).c_str());
}

void def_binary(nb::module_& m, const char* name, Binary op, const char* doc) {
  if (!is_public(name)) return;
  m.def(
      name,
      [op](const Operand& x, const Operand& y) {
        return unlocked(work_of(x, y), [&] { return op(x, y); });
      },
      nb::arg(), nb::arg(), nb::sig(signature(name, "x1: Operand, x2: Operand, /").c_str()),
      documented(name, doc).c_str());
}

/// add(x, y, alpha=a): x + a * y, as in PyTorch.
void def_scaled(nb::module_& m, const char* name, Binary op) {
  m.def(
      name,
      [op, name](const Operand& x, const Operand& y, const Scalar& alpha) {
        return unlocked(work_of(x, y),
                        [&] { return in_name_of(name, [&] { return scaled(op, x, y, alpha); }); });
      },
      nb::arg(), nb::arg(), nb::kw_only(), nb::arg("alpha"),
      nb::sig(signature(name, "x1: Operand, x2: Operand, /, *, alpha: int | float").c_str()));
}

Tensor same(const Tensor& x) { return x; }
Tensor no_imaginary_part(const Tensor& x) { return zeros_like(x); }

Tensor gelu_of(const Tensor& x, std::string_view approximate) {
  if (approximate == "none") return gelu(x);
  if (approximate == "tanh") return gelu_tanh(x);
  throw ValueError(
      message("gelu: approximate is \"none\" or \"tanh\", not \"", std::string(approximate), "\""));
}

void bind_table(nb::module_& m) {
#define BG_UNARY(name, rule, doc) def_unary(m, #name, &name, doc);
#define BG_UNARY_PARAM(name, rule, doc)
#define BG_PREDICATE(name, rule, doc) def_unary(m, #name, &name, doc);
#define BG_BINARY(name, rule, doc) def_binary(m, #name, &name, doc);
#define BG_COMPARE(name, rule, doc) def_binary(m, #name, &name, doc);
#include "ops/ops.def"
}

void bind_parametric(nb::module_& m) {
  m.def(
      "leaky_relu",
      [](const Tensor& x, double slope) {
        return unlocked(x.numel(), [&] { return leaky_relu(x, slope); });
      },
      nb::arg(), nb::arg("negative_slope") = 0.01,
      nb::sig(signature("leaky_relu", "x: Tensor, /, negative_slope: float = 0.01").c_str()),
      documented("leaky_relu", "x where x > 0, else negative_slope * x").c_str());
  m.def(
      "elu",
      [](const Tensor& x, double alpha) {
        return unlocked(x.numel(), [&] { return elu(x, alpha); });
      },
      nb::arg(), nb::arg("alpha") = 1.0,
      nb::sig(signature("elu", "x: Tensor, /, alpha: float = 1.0").c_str()),
      documented("elu", "x where x > 0, else alpha * expm1(x)").c_str());
  m.def(
      "gelu",
      [](const Tensor& x, const std::string& approximate) {
        return unlocked(x.numel(), [&] { return gelu_of(x, approximate); });
      },
      nb::arg(), nb::kw_only(), nb::arg("approximate") = "none",
      nb::sig(signature("gelu", "x: Tensor, /, *, approximate: str = 'none'").c_str()),
      documented("gelu",
                 "x * Phi(x), Phi the normal distribution function; approximate=\"tanh\" "
                 "is its cheaper form")
          .c_str());
  m.def(
      "softplus",
      [](const Tensor& x, double beta, double threshold) {
        return unlocked(x.numel(), [&] { return softplus(x, beta, threshold); });
      },
      nb::arg(), nb::arg("beta") = 1.0, nb::arg("threshold") = 20.0,
      nb::sig(signature("softplus", "x: Tensor, /, beta: float = 1.0, threshold: float = 20.0")
                  .c_str()),
      documented("softplus",
                 "log(1 + exp(beta * x)) / beta; x where beta * x is above the threshold")
          .c_str());
}

void bind_ternary(nb::module_& m) {
  m.def(
      "where",
      [](const Tensor& condition, const Operand& x, const Operand& y) {
        return unlocked(work_of(condition) + work_of(x, y), [&] { return where(condition, x, y); });
      },
      nb::arg(), nb::arg(), nb::arg(),
      nb::sig(signature("where", "condition: Tensor, x1: Operand, x2: Operand, /").c_str()),
      documented("where", "x1 where the condition holds, else x2").c_str());
  m.def(
      "clip",
      [](const Tensor& x, std::optional<Operand> low, std::optional<Operand> high) {
        return unlocked(x.numel(), [&] { return clip(x, low, high); });
      },
      nb::arg(), nb::arg("min") = nb::none(), nb::arg("max") = nb::none(),
      nb::sig(
          signature("clip", "x: Tensor, /, min: Operand | None = None, max: Operand | None = None")
              .c_str()),
      documented("clip", "x limited to [min, max]; NaN stays").c_str());
  m.def(
      "lerp",
      [](const Tensor& x, const Operand& end, const Operand& weight) {
        return unlocked(work_of(x, end), [&] { return lerp(x, end, weight); });
      },
      nb::arg(), nb::arg("end"), nb::arg("weight"),
      nb::sig(signature("lerp", "x: Tensor, /, end: Operand, weight: Operand").c_str()),
      documented("lerp", "x + weight * (end - x)").c_str());
  m.def(
      "addcmul",
      [](const Tensor& x, const Operand& y, const Operand& z, double value) {
        return unlocked(x.numel() + work_of(y, z), [&] { return addcmul(x, y, z, value); });
      },
      nb::arg(), nb::arg("tensor1"), nb::arg("tensor2"), nb::kw_only(), nb::arg("value") = 1.0,
      nb::sig(signature("addcmul",
                        "x: Tensor, /, tensor1: Operand, tensor2: Operand, *, value: float = 1.0")
                  .c_str()),
      documented("addcmul", "x + value * tensor1 * tensor2").c_str());
}

}  // namespace

void bind_elementwise(nb::module_& m) {
  bind_table(m);
  def_unary(m, "conj", &same, "the complex conjugate: of real numbers, x itself");
  def_unary(m, "real", &same, "the real part: of real numbers, x itself");
  def_unary(m, "imag", &no_imaginary_part, "the imaginary part: of real numbers, zeros");
  def_scaled(m, "add", &add);
  def_scaled(m, "subtract", &subtract);
  bind_parametric(m);
  bind_ternary(m);
  define_aliases(m, {{"absolute", "abs"},
                     {"neg", "negative"},
                     {"sub", "subtract"},
                     {"mul", "multiply"},
                     {"div", "divide"},
                     {"true_divide", "divide"},
                     {"clamp", "clip"},
                     {"eq", "equal"},
                     {"ne", "not_equal"},
                     {"lt", "less"},
                     {"le", "less_equal"},
                     {"gt", "greater"},
                     {"ge", "greater_equal"},
                     {"bitwise_not", "bitwise_invert"},
                     {"arctan2", "atan2"}});
}

}  // namespace baregrad::python

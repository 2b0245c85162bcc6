// baregrad.nn.init: initialisation of weights in place.
#include "baregrad/nn/init.h"
#include "nn_bindings.h"
#include "nn_choices.h"
#include "nn_module.h"

namespace baregrad::python {
namespace {

namespace init = nn::init;

/// The object that was passed, such as a Parameter. The functions return it.
using Given = nb::typed<nb::object, Tensor>;

/// The tensor inside the object.
const Tensor& inside(nb::handle object, const char* who) {
  if (const Tensor* tensor = tensor_in(object.ptr())) return *tensor;
  throw nb::type_error(
      (std::string(who) + ": needs a Tensor, not a '" + Py_TYPE(object.ptr())->tp_name + "'")
          .c_str());
}

/// Calls write(tensor) without the interpreter's lock.
template <class Write>
Given written(Given object, const char* who, Write write) {
  const Tensor& tensor = inside(object, who);
  unlocked(tensor.numel(), [&] { write(tensor); });
  return object;
}

using ByGain = const Tensor& (*)(const Tensor&, double, Generator*);

void def_by_gain(nb::module_& m, const char* name, ByGain fill, const char* doc) {
  m.def(
      name,
      [fill, name](Given tensor, double gain, Generator* generator) {
        return written(std::move(tensor), name, [&](const Tensor& t) { fill(t, gain, generator); });
      },
      nb::arg("tensor"), nb::arg("gain") = 1.0, nb::arg("generator").none() = nb::none(), doc);
}

using ByRange = const Tensor& (*)(const Tensor&, double, double, Generator*);

void def_by_range(nb::module_& m, const char* name, ByRange fill, const char* first,
                  const char* second, const char* doc) {
  m.def(
      name,
      [fill, name](Given tensor, double a, double b, Generator* generator) {
        return written(std::move(tensor), name, [&](const Tensor& t) { fill(t, a, b, generator); });
      },
      nb::arg("tensor"), nb::arg(first) = 0.0, nb::arg(second) = 1.0,
      nb::arg("generator").none() = nb::none(), doc);
}

using Kaiming = const Tensor& (*)(const Tensor&, const init::KaimingOptions&, Generator*);

void def_kaiming(nb::module_& m, const char* name, Kaiming fill, const char* doc) {
  m.def(
      name,
      [fill, name](Given tensor, double a, const std::string& mode, const std::string& nonlinearity,
                   Generator* generator) {
        const init::KaimingOptions options = {
            .slope = a,
            .fan = fan_from(mode, name),
            .nonlinearity = nonlinearity_from(nonlinearity, name)};
        return written(std::move(tensor), name,
                       [&](const Tensor& t) { fill(t, options, generator); });
      },
      nb::arg("tensor"), nb::arg("a") = 0.0, nb::arg("mode") = "fan_in",
      nb::arg("nonlinearity") = "leaky_relu", nb::arg("generator").none() = nb::none(), doc);
}

void bind_plain(nb::module_& m) {
  m.def(
      "constant_",
      [](Given tensor, const Scalar& value) {
        return written(std::move(tensor), "constant_",
                       [&](const Tensor& t) { init::constant_(t, value); });
      },
      nb::arg("tensor"), nb::arg("val"),
      "One value everywhere.\n\n"
      ">>> bg.nn.init.constant_(bg.ones(2), 3)\ntensor([3., 3.])\n");
  m.def(
      "zeros_",
      [](Given tensor) {
        return written(std::move(tensor), "zeros_", [](const Tensor& t) { init::zeros_(t); });
      },
      nb::arg("tensor"), "Zeros.\n\n>>> bg.nn.init.zeros_(bg.ones(2))\ntensor([0., 0.])\n");
  m.def(
      "ones_",
      [](Given tensor) {
        return written(std::move(tensor), "ones_", [](const Tensor& t) { init::ones_(t); });
      },
      nb::arg("tensor"), "Ones.\n\n>>> bg.nn.init.ones_(bg.ones(2))\ntensor([1., 1.])\n");
  m.def(
      "calculate_gain",
      [](const std::string& nonlinearity, std::optional<double> param) {
        return init::calculate_gain(nonlinearity_from(nonlinearity, "calculate_gain"),
                                    param.value_or(0.01));
      },
      nb::arg("nonlinearity"), nb::arg("param") = nb::none(),
      "The factor by which weights before a nonlinearity are larger.\n\n"
      ">>> bg.nn.init.calculate_gain('tanh')\n1.6666666666666667\n");
}

}  // namespace

void bind_nn_init(nb::module_& m) {
  bind_plain(m);
  def_by_range(m, "uniform_", &init::uniform_, "a", "b",
               "Uniform in [a, b).\n\n"
               ">>> bool(bg.nn.init.uniform_(bg.ones(1), 2.0, 3.0).item() >= 2)\nTrue\n");
  def_by_range(m, "normal_", &init::normal_, "mean", "std",
               "Normal numbers.\n\n"
               ">>> bg.nn.init.normal_(bg.ones((2, 3))).shape\n(2, 3)\n");
  m.def(
      "trunc_normal_",
      [](Given tensor, double mean, double std, double a, double b, Generator* generator) {
        return written(std::move(tensor), "trunc_normal_", [&](const Tensor& t) {
          init::trunc_normal_(t, mean, std, a, b, generator);
        });
      },
      nb::arg("tensor"), nb::arg("mean") = 0.0, nb::arg("std") = 1.0, nb::arg("a") = -2.0,
      nb::arg("b") = 2.0, nb::arg("generator").none() = nb::none(),
      "Normal numbers that lie in [a, b].\n\n"
      ">>> abs(bg.nn.init.trunc_normal_(bg.ones(1)).item()) <= 2\nTrue\n");
  def_by_gain(m, "xavier_uniform_", &init::xavier_uniform_,
              "Uniform, with variance 2 gain^2 / (fan in + fan out).\n\n"
              ">>> bg.nn.init.xavier_uniform_(bg.ones((2, 3))).shape\n(2, 3)\n");
  def_by_gain(m, "xavier_normal_", &init::xavier_normal_,
              "Normal, with variance 2 gain^2 / (fan in + fan out).\n\n"
              ">>> bg.nn.init.xavier_normal_(bg.ones((2, 3))).shape\n(2, 3)\n");
  def_by_gain(m, "orthogonal_", &init::orthogonal_,
              "Rows, or columns if they are fewer, are orthogonal and have norm gain.\n\n"
              ">>> bg.nn.init.orthogonal_(bg.ones((2, 3))).shape\n(2, 3)\n");
  def_kaiming(m, "kaiming_uniform_", &init::kaiming_uniform_,
              "Uniform, with variance gain^2 / fan.\n\n"
              ">>> bg.nn.init.kaiming_uniform_(bg.ones((2, 3)), mode='fan_out').shape\n(2, 3)\n");
  def_kaiming(m, "kaiming_normal_", &init::kaiming_normal_,
              "Normal, with variance gain^2 / fan.\n\n"
              ">>> bg.nn.init.kaiming_normal_(bg.ones((2, 3)), nonlinearity='relu').shape\n"
              "(2, 3)\n");
}

}  // namespace baregrad::python

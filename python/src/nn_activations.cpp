// Activations as modules.
#include "baregrad/nn/activations.h"
#include "nn_bindings.h"
#include "nn_choices.h"
#include "nn_module.h"

namespace baregrad::python {
namespace {

template <class L>
void bind_activation(nb::module_& nn, const char* name, const char* doc) {
  Layer<L>(nn, name, doc).init_from_arguments().forward();
}

}  // namespace

void bind_nn_activations(nb::module_& nn) {
  bind_activation<nn::ReLU>(nn, "ReLU",
                            "x where x > 0, else 0.\n\n"
                            ">>> bg.nn.ReLU()(bg.asarray([-1.0, 2.0]))\ntensor([0., 2.])\n");
  bind_activation<nn::Sigmoid>(nn, "Sigmoid",
                               "1 / (1 + exp(-x)).\n\n"
                               ">>> bg.nn.Sigmoid()(bg.asarray([0.0]))\ntensor([0.5000])\n");
  bind_activation<nn::Tanh>(nn, "Tanh",
                            "The hyperbolic tangent.\n\n"
                            ">>> bg.nn.Tanh()(bg.asarray([0.0]))\ntensor([0.])\n");
  bind_activation<nn::SiLU>(nn, "SiLU",
                            "x sigmoid(x).\n\n"
                            ">>> bg.nn.SiLU()(bg.asarray([0.0]))\ntensor([0.])\n");
  bind_activation<nn::Mish>(nn, "Mish",
                            "x tanh(softplus(x)).\n\n"
                            ">>> bg.nn.Mish()(bg.asarray([0.0]))\ntensor([0.])\n");
  bind_activation<nn::Hardswish>(nn, "Hardswish",
                                 "x clip(x + 3, 0, 6) / 6.\n\n"
                                 ">>> bg.nn.Hardswish()(bg.asarray([3.0]))\ntensor([3.])\n");
  bind_activation<nn::LeakyReLU>(nn, "LeakyReLU",
                                 "x where x > 0, else negative_slope x.\n\n"
                                 ">>> bg.nn.LeakyReLU(0.5)(bg.asarray([-2.0]))\ntensor([-1.])\n");
  bind_activation<nn::ELU>(nn, "ELU",
                           "x where x > 0, else alpha (exp(x) - 1).\n\n"
                           ">>> bg.nn.ELU()(bg.asarray([0.0, 2.0]))\ntensor([0., 2.])\n");
  Layer<nn::GELU>(nn, "GELU",
                  "x Phi(x), Phi the normal distribution function; or approximate=\"tanh\".\n\n"
                  ">>> bg.nn.GELU()(bg.asarray([0.0]))\ntensor([0.])\n")
      .init(
          +[](void* place, std::string approximate) {
            new (place) nn::GELU(is_tanh(approximate, "GELU"));
          },
          nb::arg("approximate") = "none")
      .forward();
  bind_activation<nn::Softplus>(
      nn, "Softplus",
      "log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold."
      "\n\n>>> bg.nn.Softplus()(bg.asarray([30.0]))\ntensor([30.])\n");
  bind_activation<nn::Softmax>(nn, "Softmax",
                               "exp(x) / sum(exp(x)) over an axis, the last one when not said.\n\n"
                               ">>> bg.nn.Softmax(-1)(bg.ones(2))\ntensor([0.5000, 0.5000])\n");
  bind_activation<nn::LogSoftmax>(nn, "LogSoftmax",
                                  "log(softmax(x)) over an axis, the last one when not said.\n\n"
                                  ">>> bg.nn.LogSoftmax(-1)(bg.ones(1))\ntensor([0.])\n");
}

}  // namespace baregrad::python

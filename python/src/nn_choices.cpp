// Conversion of words to enumerations.
#include "nn_choices.h"

#include <initializer_list>

#include "baregrad/error.h"
#include "core/message.h"

namespace baregrad::python {
namespace {

template <class E>
E choose(const std::string& text, const char* what, const char* who,
         std::initializer_list<std::pair<const char*, E>> choices) {
  std::string list;
  for (const auto& [word, value] : choices) {
    if (text == word) return value;
    list += message(list.empty() ? "'" : ", '", word, "'");
  }
  throw ValueError(message(who, ": ", what, " '", text, "' is unknown; it is one of ", list));
}

}  // namespace

Activation activation_from(const std::optional<std::string>& text, const char* who) {
  if (!text) return Activation::None;
  return choose<Activation>(*text, "activation", who,
                            {{"none", Activation::None},
                             {"relu", Activation::Relu},
                             {"gelu", Activation::Gelu},
                             {"gelu_tanh", Activation::GeluTanh},
                             {"silu", Activation::Silu}});
}

Reduction reduction_from(const std::string& text, const char* who) {
  return choose<Reduction>(
      text, "reduction", who,
      {{"none", Reduction::None}, {"mean", Reduction::Mean}, {"sum", Reduction::Sum}});
}

bool is_tanh(const std::string& text, const char* who) {
  return choose<bool>(text, "approximate", who, {{"none", false}, {"tanh", true}});
}

nn::init::Fan fan_from(const std::string& text, const char* who) {
  using nn::init::Fan;
  return choose<Fan>(text, "mode", who, {{"fan_in", Fan::In}, {"fan_out", Fan::Out}});
}

nn::init::Nonlinearity nonlinearity_from(const std::string& text, const char* who) {
  using N = nn::init::Nonlinearity;
  return choose<N>(text, "nonlinearity", who,
                   {{"linear", N::Linear},
                    {"conv1d", N::Linear},
                    {"conv2d", N::Linear},
                    {"conv_transpose2d", N::Linear},
                    {"sigmoid", N::Sigmoid},
                    {"tanh", N::Tanh},
                    {"relu", N::Relu},
                    {"leaky_relu", N::LeakyRelu},
                    {"selu", N::Selu}});
}

nn::RNNNonlinearity rnn_nonlinearity_from(const std::string& text, const char* who) {
  using N = nn::RNNNonlinearity;
  return choose<N>(text, "nonlinearity", who, {{"tanh", N::Tanh}, {"relu", N::Relu}});
}

}  // namespace baregrad::python

// Conversion of PyTorch's words to enumerations of the engine.
#pragma once

#include <string>
#include <utility>

#include "baregrad/activation.h"
#include "baregrad/nn/init.h"
#include "baregrad/nn/recurrent.h"
#include "baregrad/ops_fused.h"

namespace baregrad::python {

// For an unknown word, each function throws a ValueError that begins with `who` and lists the
// words.
/// "relu", "gelu", "gelu_tanh", "silu" or "none"; an empty optional is "none".
Activation activation_from(const std::optional<std::string>& text, const char* who);
Reduction reduction_from(const std::string& text, const char* who);
/// The `approximate` of GELU: "none" or "tanh".
bool is_tanh(const std::string& text, const char* who);
nn::init::Fan fan_from(const std::string& text, const char* who);
nn::init::Nonlinearity nonlinearity_from(const std::string& text, const char* who);
nn::RNNNonlinearity rnn_nonlinearity_from(const std::string& text, const char* who);

}  // namespace baregrad::python

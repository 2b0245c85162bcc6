// Enumerations of the engine as the words PyTorch uses for them.
#pragma once

#include <string>
#include <utility>

#include "baregrad/activation.h"
#include "baregrad/nn/init.h"
#include "baregrad/nn/recurrent.h"
#include "baregrad/ops_fused.h"

namespace baregrad::python {

// Each throws a ValueError that opens with `who` and lists the choices.
/// "relu", "gelu", "gelu_tanh", "silu" or "none"; not given is none.
Activation activation_from(const std::optional<std::string>& text, const char* who);
Reduction reduction_from(const std::string& text, const char* who);
/// "none" or "tanh": GELU's.
bool is_tanh(const std::string& text, const char* who);
nn::init::Fan fan_from(const std::string& text, const char* who);
nn::init::Nonlinearity nonlinearity_from(const std::string& text, const char* who);
nn::RNNNonlinearity rnn_nonlinearity_from(const std::string& text, const char* who);

}  // namespace baregrad::python

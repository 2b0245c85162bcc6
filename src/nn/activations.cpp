// Activations as modules.
#include "baregrad/nn/activations.h"

#include "baregrad/ops.h"
#include "core/message.h"
#include "nn/text.h"

namespace baregrad::nn {

Tensor ReLU::forward(const Tensor& x) { return relu(x); }
Tensor Sigmoid::forward(const Tensor& x) { return sigmoid(x); }
Tensor Tanh::forward(const Tensor& x) { return tanh(x); }
Tensor SiLU::forward(const Tensor& x) { return silu(x); }
Tensor Mish::forward(const Tensor& x) { return mish(x); }
Tensor Hardswish::forward(const Tensor& x) { return hardswish(x); }
Tensor LeakyReLU::forward(const Tensor& x) { return leaky_relu(x, negative_slope_); }
Tensor ELU::forward(const Tensor& x) { return elu(x, alpha_); }
Tensor GELU::forward(const Tensor& x) { return tanh_ ? gelu_tanh(x) : gelu(x); }
Tensor Softplus::forward(const Tensor& x) { return softplus(x, beta_, threshold_); }
Tensor Softmax::forward(const Tensor& x) { return softmax(x, axis_); }
Tensor LogSoftmax::forward(const Tensor& x) { return log_softmax(x, axis_); }

std::string LeakyReLU::extra_repr() const { return text_of(arguments()); }
std::string ELU::extra_repr() const { return text_of(arguments()); }
std::string GELU::extra_repr() const {
  return message("approximate='", tanh_ ? "tanh" : "none", "'");
}
std::string Softplus::extra_repr() const { return text_of(arguments()); }
std::string Softmax::extra_repr() const { return text_of(arguments()); }
std::string LogSoftmax::extra_repr() const { return text_of(arguments()); }

}  // namespace baregrad::nn

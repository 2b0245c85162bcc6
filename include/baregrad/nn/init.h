// First values of weights, written in place and without history. Random numbers come from
// `generator`, or from the process's own when it is null.
#pragma once

#include <optional>

#include "baregrad/generator.h"
#include "baregrad/tensor.h"

namespace baregrad::nn::init {

/// Which fan keeps its variance.
enum class Fan { In, Out };
/// What follows the layer, for the size of its weights.
enum class Nonlinearity { Linear, Sigmoid, Tanh, Relu, LeakyRelu, Selu };

/// 1, 1, 5/3, sqrt 2, sqrt(2 / (1 + slope^2)), 3/4.
BAREGRAD_API double calculate_gain(Nonlinearity nonlinearity, double slope = 0.01);

struct Fans {
  std::int64_t in;
  std::int64_t out;
};
/// Of a weight [out, in, ...]: sizes of axes 1 and 0, times the rest. Throws ShapeError below two
/// dimensions.
BAREGRAD_API Fans fans(const Tensor& weight);

BAREGRAD_API const Tensor& uniform_(const Tensor& t, double low = 0.0, double high = 1.0,
                                    Generator* generator = nullptr);
BAREGRAD_API const Tensor& normal_(const Tensor& t, double mean = 0.0, double deviation = 1.0,
                                   Generator* generator = nullptr);
/// Normal numbers that lie in [low, high]; exact in the tails, too.
BAREGRAD_API const Tensor& trunc_normal_(const Tensor& t, double mean = 0.0, double deviation = 1.0,
                                         double low = -2.0, double high = 2.0,
                                         Generator* generator = nullptr);
BAREGRAD_API const Tensor& constant_(const Tensor& t, const Scalar& value);
BAREGRAD_API const Tensor& zeros_(const Tensor& t);
BAREGRAD_API const Tensor& ones_(const Tensor& t);
/// Variance 2 gain^2 / (in + out).
BAREGRAD_API const Tensor& xavier_uniform_(const Tensor& t, double gain = 1.0,
                                           Generator* generator = nullptr);
BAREGRAD_API const Tensor& xavier_normal_(const Tensor& t, double gain = 1.0,
                                          Generator* generator = nullptr);

struct KaimingOptions {
  double slope = 0.0;  ///< of leaky ReLU
  Fan fan = Fan::In;
  Nonlinearity nonlinearity = Nonlinearity::LeakyRelu;
};
/// Variance gain^2 / fan.
BAREGRAD_API const Tensor& kaiming_uniform_(const Tensor& t, const KaimingOptions& options = {},
                                            Generator* generator = nullptr);
BAREGRAD_API const Tensor& kaiming_normal_(const Tensor& t, const KaimingOptions& options = {},
                                           Generator* generator = nullptr);
/// As a matrix [size of axis 0, rest]: its rows, or its columns if they are fewer, are orthogonal
/// and have norm `gain`.
BAREGRAD_API const Tensor& orthogonal_(const Tensor& t, double gain = 1.0,
                                       Generator* generator = nullptr);

/// PyTorch's default of Linear and the convolutions: both uniform within 1 / sqrt(fan in). The bias
/// may be undefined.
BAREGRAD_API void default_weight_and_bias_(const Tensor& weight, const Tensor& bias,
                                           Generator* generator = nullptr);

}  // namespace baregrad::nn::init

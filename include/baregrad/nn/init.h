// Initialisation of weights, in place and without history. Random numbers come from `generator`, or
// from the process's generator if it is null.
#pragma once

#include <optional>

#include "baregrad/generator.h"
#include "baregrad/tensor.h"

namespace baregrad::nn::init {

/// The fan whose variance is preserved.
enum class Fan { In, Out };
/// The nonlinearity after the layer; it determines the gain.
enum class Nonlinearity { Linear, Sigmoid, Tanh, Relu, LeakyRelu, Selu };

/// In the order of Nonlinearity: 1, 1, 5/3, sqrt(2), sqrt(2 / (1 + slope^2)), 3/4.
BAREGRAD_API double calculate_gain(Nonlinearity nonlinearity, double slope = 0.01);

struct Fans {
  std::int64_t in;
  std::int64_t out;
};
/// The fans of a weight [out, in, ...]: the sizes of axes 1 and 0, each times the product of the
/// other axes. Throws ShapeError for fewer than two dimensions.
BAREGRAD_API Fans fans(const Tensor& weight);

BAREGRAD_API const Tensor& uniform_(const Tensor& t, double low = 0.0, double high = 1.0,
                                    Generator* generator = nullptr);
BAREGRAD_API const Tensor& normal_(const Tensor& t, double mean = 0.0, double deviation = 1.0,
                                   Generator* generator = nullptr);
/// Normal numbers truncated to [low, high], exact in the tails too.
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
  double slope = 0.0;  ///< of the leaky ReLU
  Fan fan = Fan::In;
  Nonlinearity nonlinearity = Nonlinearity::LeakyRelu;
};
/// Variance gain^2 / fan.
BAREGRAD_API const Tensor& kaiming_uniform_(const Tensor& t, const KaimingOptions& options = {},
                                            Generator* generator = nullptr);
BAREGRAD_API const Tensor& kaiming_normal_(const Tensor& t, const KaimingOptions& options = {},
                                           Generator* generator = nullptr);
/// The tensor as a matrix [size of axis 0, product of the other axes] has orthogonal rows of norm
/// `gain`, or orthogonal columns if there are fewer columns than rows.
BAREGRAD_API const Tensor& orthogonal_(const Tensor& t, double gain = 1.0,
                                       Generator* generator = nullptr);

/// The default of Linear and the convolutions, as in PyTorch: both are uniform within 1 / sqrt(fan
/// in). The bias may be undefined.
BAREGRAD_API void default_weight_and_bias_(const Tensor& weight, const Tensor& bias,
                                           Generator* generator = nullptr);

}  // namespace baregrad::nn::init

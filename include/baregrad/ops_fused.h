// Ops with one pass each for forward and backward: normalisation, cross-entropy, attention.
// PyTorch's semantics. Gradients of any order exist: second and higher ones use plain ops.
#pragma once

#include <optional>

#include "baregrad/tensor.h"

namespace baregrad {

/// Normalises over the last axes, whose sizes are `normalized_shape`; weight and bias have that
/// shape or are undefined.
BAREGRAD_API Tensor layer_norm(const Tensor& x, const Dims& normalized_shape,
                               const Tensor& weight = Tensor(), const Tensor& bias = Tensor(),
                               double eps = 1e-5);
/// x / sqrt(mean(x^2) + eps) * weight; eps is the dtype's epsilon when not given.
BAREGRAD_API Tensor rms_norm(const Tensor& x, const Dims& normalized_shape,
                             const Tensor& weight = Tensor(), std::optional<double> eps = {});
/// x [N, C, ...]: over each group of C / groups channels; weight and bias [C].
BAREGRAD_API Tensor group_norm(const Tensor& x, std::int64_t groups,
                               const Tensor& weight = Tensor(), const Tensor& bias = Tensor(),
                               double eps = 1e-5);
/// x [N, C, ...]. In training it normalises by the batch's mean and variance and, where the running
/// ones are defined, moves them (in place) towards these by `momentum`. Otherwise it normalises by
/// the running ones.
BAREGRAD_API Tensor batch_norm(const Tensor& x, const Tensor& running_mean,
                               const Tensor& running_var, const Tensor& weight = Tensor(),
                               const Tensor& bias = Tensor(), bool training = false,
                               double momentum = 0.1, double eps = 1e-5);

/// Refuses a number in place of `training`: the caller left out an argument before momentum.
template <NoSwitch T>
Tensor batch_norm(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, T,
                  double = 0.1, double = 1e-5) = delete;

enum class Reduction { None, Mean, Sum };

struct CrossEntropyOptions {
  Tensor weight = {};  ///< [C], or undefined; gets no gradient
  std::int64_t ignore_index = -100;
  double label_smoothing = 0.0;
  Reduction reduction = Reduction::Mean;
};
/// logits [N, C, ...] or [C]; target: classes (integers [N, ...]) or probabilities with the shape
/// of the logits.
BAREGRAD_API Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                                  const CrossEntropyOptions& options = {});

struct AttentionOptions {
  Tensor mask = {};  ///< bool (true: attend) or floats to be added, broadcast to [..., T, S]
  bool causal = false;
  std::optional<double> scale = {};  ///< 1 / sqrt(E) when not given
};
/// q [..., T, E], k [..., S, E], v [..., S, F] -> [..., T, F]. The T x S weights are stored only
/// for second derivatives and for the gradient of a mask. A query that may attend to no key gives
/// 0. Causal: query t attends to keys 0 to t. A mask and `causal` may be combined.
BAREGRAD_API Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                                 const AttentionOptions& options = {});

}  // namespace baregrad

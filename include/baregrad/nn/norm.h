// Normalisation as layers, over ops_fused.h.
#pragma once

#include <optional>

#include "baregrad/nn/module.h"
#include "baregrad/ops_fused.h"

namespace baregrad::nn {

struct NormOptions {
  double eps = 1e-5;
  bool affine = true;  ///< with weight and bias
  bool bias = true;    ///< false: only the weight
};

/// Normalises over the last axes, whose sizes are `normalized_shape`.
class BAREGRAD_API LayerNorm : public Module {
 public:
  explicit LayerNorm(const Dims& normalized_shape, const NormOptions& options = {});
  explicit LayerNorm(std::int64_t size, const NormOptions& options = {})
      : LayerNorm(Dims{size}, options) {}
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;

  Tensor weight;
  Tensor bias;

 private:
  Dims normalized_shape_;
  double eps_;
};

/// x / sqrt(mean(x^2) + eps) * weight. The default of eps is the epsilon of the dtype.
class BAREGRAD_API RMSNorm : public Module {
 public:
  explicit RMSNorm(const Dims& normalized_shape, std::optional<double> eps = {},
                   bool affine = true);
  explicit RMSNorm(std::int64_t size, std::optional<double> eps = {}, bool affine = true)
      : RMSNorm(Dims{size}, eps, affine) {}
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;

  Tensor weight;

 private:
  Dims normalized_shape_;
  std::optional<double> eps_;
};

/// Normalises [N, C, ...] over each of `num_groups` groups of channels.
class BAREGRAD_API GroupNorm : public Module {
 public:
  GroupNorm(std::int64_t num_groups, std::int64_t num_channels, const NormOptions& options = {});
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;

  Tensor weight;
  Tensor bias;

 private:
  std::int64_t num_groups_;
  std::int64_t num_channels_;
  double eps_;
};

struct BatchNormOptions {
  double eps = 1e-5;
  /// The weight of each batch in the running statistics. Unset: they are the mean over all batches.
  std::optional<double> momentum = 0.1;
  bool affine = true;
  bool bias = true;
  bool track_running_stats = true;  ///< false: use batch statistics in eval mode too
};

class BAREGRAD_API BatchNorm : public Module {
 public:
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;

  Tensor weight;
  Tensor bias;
  Tensor running_mean;
  Tensor running_var;
  Tensor num_batches_tracked;  ///< int64

 protected:
  BatchNorm(const char* who, std::int64_t num_features, const BatchNormOptions& options,
            int least_ndim, int most_ndim);

 private:
  const char* who_;
  std::int64_t num_features_;
  BatchNormOptions options_;
  int least_ndim_;
  int most_ndim_;
};

/// [N, C] or [N, C, L].
class BAREGRAD_API BatchNorm1d : public BatchNorm {
 public:
  explicit BatchNorm1d(std::int64_t num_features, const BatchNormOptions& options = {});
};

/// [N, C, H, W].
class BAREGRAD_API BatchNorm2d : public BatchNorm {
 public:
  explicit BatchNorm2d(std::int64_t num_features, const BatchNormOptions& options = {});
};

}  // namespace baregrad::nn

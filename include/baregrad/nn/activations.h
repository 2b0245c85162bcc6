// Activations as modules, for Sequential. The functions themselves are ops.
#pragma once

#include "baregrad/nn/module.h"

namespace baregrad::nn {

class BAREGRAD_API ReLU : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class BAREGRAD_API Sigmoid : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class BAREGRAD_API Tanh : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class BAREGRAD_API SiLU : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class BAREGRAD_API Mish : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class BAREGRAD_API Hardswish : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

class BAREGRAD_API LeakyReLU : public Module {
 public:
  explicit LeakyReLU(double negative_slope = 0.01) noexcept : negative_slope_(negative_slope) {}
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  auto arguments() const { return std::tuple(Argument{"negative_slope", negative_slope_}); }

 private:
  double negative_slope_;
};

class BAREGRAD_API ELU : public Module {
 public:
  explicit ELU(double alpha = 1.0) noexcept : alpha_(alpha) {}
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  auto arguments() const { return std::tuple(Argument{"alpha", alpha_}); }

 private:
  double alpha_;
};

/// x Phi(x), with erf or with its tanh approximation.
class BAREGRAD_API GELU : public Module {
 public:
  explicit GELU(bool approximate_tanh = false) noexcept : tanh_(approximate_tanh) {}
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;

 private:
  bool tanh_;
};

/// log(1 + exp(beta x)) / beta, and x where beta x is above the threshold.
class BAREGRAD_API Softplus : public Module {
 public:
  explicit Softplus(double beta = 1.0, double threshold = 20.0) noexcept
      : beta_(beta), threshold_(threshold) {}
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  auto arguments() const {
    return std::tuple(Argument{"beta", beta_}, Argument{"threshold", threshold_});
  }

 private:
  double beta_;
  double threshold_;
};

/// Over an axis, by default the last one. PyTorch's default depends on the number of axes.
class BAREGRAD_API Softmax : public Module {
 public:
  explicit Softmax(std::int64_t axis = -1) noexcept : axis_(axis) {}
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  auto arguments() const { return std::tuple(Argument{"dim", axis_}); }

 private:
  std::int64_t axis_;
};

class BAREGRAD_API LogSoftmax : public Module {
 public:
  explicit LogSoftmax(std::int64_t axis = -1) noexcept : axis_(axis) {}
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  auto arguments() const { return std::tuple(Argument{"dim", axis_}); }

 private:
  std::int64_t axis_;
};

}  // namespace baregrad::nn

// Losses as functions and as modules that store their options. Input and target have the same
// shape. PyTorch broadcasts [N] against [N, 1]; here that is an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "baregrad/nn/module.h"
#include "baregrad/ops_fused.h"

namespace baregrad::nn {

using baregrad::cross_entropy;

/// (x - t)^2
BAREGRAD_API Tensor mse_loss(const Tensor& input, const Tensor& target,
                             Reduction reduction = Reduction::Mean);
/// |x - t|
BAREGRAD_API Tensor l1_loss(const Tensor& input, const Tensor& target,
                            Reduction reduction = Reduction::Mean);
/// d^2 / (2 beta) where d = |x - t| is below beta, else d - beta / 2.
BAREGRAD_API Tensor smooth_l1_loss(const Tensor& input, const Tensor& target,
                                   Reduction reduction = Reduction::Mean, double beta = 1.0);
/// d^2 / 2 where d = |x - t| is below delta, else delta (d - delta / 2).
BAREGRAD_API Tensor huber_loss(const Tensor& input, const Tensor& target,
                               Reduction reduction = Reduction::Mean, double delta = 1.0);
/// -t log x - (1 - t) log(1 - x), with logarithms clamped to at least -100. `weight` broadcasts; it
/// may be undefined.
BAREGRAD_API Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                                         const Tensor& weight = Tensor(),
                                         Reduction reduction = Reduction::Mean);
/// The same for sigmoid(x), accurate for large x. `pos_weight` multiplies the loss of positive
/// targets.
BAREGRAD_API Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                                     const Tensor& weight = Tensor(),
                                                     const Tensor& pos_weight = Tensor(),
                                                     Reduction reduction = Reduction::Mean);

struct NLLOptions {
  Tensor weight = {};  ///< [C], or undefined
  std::int64_t ignore_index = -100;
  Reduction reduction = Reduction::Mean;  ///< Mean is weighted by the weights of the targets
};
/// -x[target], for log-probabilities [N, C, ...] or [C] and classes [N, ...].
BAREGRAD_API Tensor nll_loss(const Tensor& input, const Tensor& target,
                             const NLLOptions& options = {});
/// t (log t - x) for log-probabilities x; exp(t) (t - x) with `log_target`. PyTorch's "batchmean"
/// is the sum divided by the batch size.
BAREGRAD_API Tensor kl_div(const Tensor& input, const Tensor& target,
                           Reduction reduction = Reduction::Mean, bool log_target = false);
/// x where the target is 1, max(0, margin - x) where it is -1.
BAREGRAD_API Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                                         double margin = 1.0,
                                         Reduction reduction = Reduction::Mean);

struct MultiMarginOptions {
  int p = 1;  ///< 1 or 2
  double margin = 1.0;
  Tensor weight = {};  ///< [C], or undefined
  Reduction reduction = Reduction::Mean;
};
/// The multi-class hinge: sum over j != t of max(0, margin - x[t] + x[j])^p / C, for [N, C] or [C].
BAREGRAD_API Tensor multi_margin_loss(const Tensor& input, const Tensor& target,
                                      const MultiMarginOptions& options = {});
/// Over the last axis: 1 - cos(a, b) where the target is 1, max(0, cos(a, b) - margin) where it is
/// -1.
BAREGRAD_API Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2,
                                          const Tensor& target, double margin = 0.0,
                                          Reduction reduction = Reduction::Mean);

/// The base class of losses of an input and a target.
class BAREGRAD_API Loss : public Module {
 public:
  using Module::forward;
  virtual Tensor forward(const Tensor& input, const Tensor& target) = 0;
  Tensor operator()(const Tensor& input, const Tensor& target) { return forward(input, target); }

 protected:
  explicit Loss(Reduction reduction) noexcept : reduction_(reduction) {}
  Reduction reduction_;
};

class BAREGRAD_API MSELoss : public Loss {
 public:
  explicit MSELoss(Reduction reduction = Reduction::Mean) noexcept : Loss(reduction) {}
  using Loss::forward;
  Tensor forward(const Tensor& input, const Tensor& target) override;
};

class BAREGRAD_API L1Loss : public Loss {
 public:
  explicit L1Loss(Reduction reduction = Reduction::Mean) noexcept : Loss(reduction) {}
  using Loss::forward;
  Tensor forward(const Tensor& input, const Tensor& target) override;
};

class BAREGRAD_API SmoothL1Loss : public Loss {
 public:
  explicit SmoothL1Loss(Reduction reduction = Reduction::Mean, double beta = 1.0) noexcept
      : Loss(reduction), beta_(beta) {}
  using Loss::forward;
  Tensor forward(const Tensor& input, const Tensor& target) override;

 private:
  double beta_;
};

class BAREGRAD_API HuberLoss : public Loss {
 public:
  explicit HuberLoss(Reduction reduction = Reduction::Mean, double delta = 1.0) noexcept
      : Loss(reduction), delta_(delta) {}
  using Loss::forward;
  Tensor forward(const Tensor& input, const Tensor& target) override;

 private:
  double delta_;
};

class BAREGRAD_API BCELoss : public Loss {
 public:
  explicit BCELoss(const Tensor& weight = Tensor(), Reduction reduction = Reduction::Mean);
  using Loss::forward;
  Tensor forward(const Tensor& input, const Tensor& target) override;

  Tensor weight;
};

class BAREGRAD_API BCEWithLogitsLoss : public Loss {
 public:
  explicit BCEWithLogitsLoss(const Tensor& weight = Tensor(), const Tensor& pos_weight = Tensor(),
                             Reduction reduction = Reduction::Mean);
  using Loss::forward;
  Tensor forward(const Tensor& input, const Tensor& target) override;

  Tensor weight;
  Tensor pos_weight;
};

class BAREGRAD_API CrossEntropyLoss : public Loss {
 public:
  explicit CrossEntropyLoss(const CrossEntropyOptions& options = {});
  using Loss::forward;
  Tensor forward(const Tensor& input, const Tensor& target) override;

  Tensor weight;

 private:
  CrossEntropyOptions options_;
};

class BAREGRAD_API NLLLoss : public Loss {
 public:
  explicit NLLLoss(const NLLOptions& options = {});
  using Loss::forward;
  Tensor forward(const Tensor& input, const Tensor& target) override;

  Tensor weight;

 private:
  NLLOptions options_;
};

class BAREGRAD_API KLDivLoss : public Loss {
 public:
  explicit KLDivLoss(Reduction reduction = Reduction::Mean, bool log_target = false) noexcept
      : Loss(reduction), log_target_(log_target) {}
  using Loss::forward;
  Tensor forward(const Tensor& input, const Tensor& target) override;

 private:
  bool log_target_;
};

class BAREGRAD_API HingeEmbeddingLoss : public Loss {
 public:
  explicit HingeEmbeddingLoss(double margin = 1.0, Reduction reduction = Reduction::Mean) noexcept
      : Loss(reduction), margin_(margin) {}
  using Loss::forward;
  Tensor forward(const Tensor& input, const Tensor& target) override;

 private:
  double margin_;
};

class BAREGRAD_API MultiMarginLoss : public Loss {
 public:
  explicit MultiMarginLoss(const MultiMarginOptions& options = {});
  using Loss::forward;
  Tensor forward(const Tensor& input, const Tensor& target) override;

  Tensor weight;

 private:
  MultiMarginOptions options_;
};

class BAREGRAD_API CosineEmbeddingLoss : public Module {
 public:
  explicit CosineEmbeddingLoss(double margin = 0.0, Reduction reduction = Reduction::Mean) noexcept
      : margin_(margin), reduction_(reduction) {}
  using Module::forward;
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target);
  Tensor operator()(const Tensor& input1, const Tensor& input2, const Tensor& target) {
    return forward(input1, input2, target);
  }

 private:
  double margin_;
  Reduction reduction_;
};

}  // namespace baregrad::nn

// Losses as modules. CrossEntropyLoss and the others call the functions of the same name.
#include "baregrad/nn/losses.h"

namespace baregrad::nn {

Tensor MSELoss::forward(const Tensor& input, const Tensor& target) {
  return mse_loss(input, target, reduction_);
}
Tensor L1Loss::forward(const Tensor& input, const Tensor& target) {
  return l1_loss(input, target, reduction_);
}
Tensor SmoothL1Loss::forward(const Tensor& input, const Tensor& target) {
  return smooth_l1_loss(input, target, reduction_, beta_);
}
Tensor HuberLoss::forward(const Tensor& input, const Tensor& target) {
  return huber_loss(input, target, reduction_, delta_);
}

BCELoss::BCELoss(const Tensor& class_weight, Reduction reduction)
    : Loss(reduction), weight(class_weight) {
  register_buffer("weight", weight);
}
Tensor BCELoss::forward(const Tensor& input, const Tensor& target) {
  return binary_cross_entropy(input, target, weight, reduction_);
}

BCEWithLogitsLoss::BCEWithLogitsLoss(const Tensor& element_weight, const Tensor& positive_weight,
                                     Reduction reduction)
    : Loss(reduction), weight(element_weight), pos_weight(positive_weight) {
  register_buffer("weight", weight);
  register_buffer("pos_weight", pos_weight);
}
Tensor BCEWithLogitsLoss::forward(const Tensor& input, const Tensor& target) {
  return binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction_);
}

NLLLoss::NLLLoss(const NLLOptions& options)
    : Loss(options.reduction), weight(options.weight), options_(options) {
  register_buffer("weight", weight);
}
Tensor NLLLoss::forward(const Tensor& input, const Tensor& target) {
  NLLOptions options = options_;
  options.weight = weight;
  return nll_loss(input, target, options);
}

Tensor KLDivLoss::forward(const Tensor& input, const Tensor& target) {
  return kl_div(input, target, reduction_, log_target_);
}
Tensor HingeEmbeddingLoss::forward(const Tensor& input, const Tensor& target) {
  return hinge_embedding_loss(input, target, margin_, reduction_);
}

MultiMarginLoss::MultiMarginLoss(const MultiMarginOptions& options)
    : Loss(options.reduction), weight(options.weight), options_(options) {
  register_buffer("weight", weight);
}
Tensor MultiMarginLoss::forward(const Tensor& input, const Tensor& target) {
  MultiMarginOptions options = options_;
  options.weight = weight;
  return multi_margin_loss(input, target, options);
}

Tensor CosineEmbeddingLoss::forward(const Tensor& input1, const Tensor& input2,
                                    const Tensor& target) {
  return cosine_embedding_loss(input1, input2, target, margin_, reduction_);
}

}  // namespace baregrad::nn

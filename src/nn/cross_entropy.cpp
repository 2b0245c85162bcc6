// CrossEntropyLoss, over the fused op.
#include "baregrad/nn/losses.h"

namespace baregrad::nn {

CrossEntropyLoss::CrossEntropyLoss(const CrossEntropyOptions& options)
    : Loss(options.reduction), weight(options.weight), options_(options) {
  register_buffer("weight", weight);
}

Tensor CrossEntropyLoss::forward(const Tensor& input, const Tensor& target) {
  CrossEntropyOptions options = options_;
  options.weight = weight;
  return cross_entropy(input, target, options);
}

}  // namespace baregrad::nn

// A classifier of random digits.
#include "lab/small_step.h"

#include <vector>

#include "baregrad/generator.h"
#include "baregrad/ops.h"
#include "baregrad/ops_fused.h"

namespace baregrad::lab {

SmallStep::SmallStep(std::uint64_t seed) {
  manual_seed(seed);
  model_ = nn::make<nn::MLP>(std::vector<std::int64_t>{784, 64, 32, 10});
  optimizer_ = std::make_unique<optim::SGD>(model_->parameters(), optim::SGDOptions{.lr = 1e-3});
  x_ = randn({kBatch, 784});
  y_ = randint(0, 10, {kBatch});
}

void SmallStep::run() {
  cross_entropy((*model_)(x_), y_).backward();
  optimizer_->step();
  optimizer_->zero_grad();
}

}  // namespace baregrad::lab

// One training step of a small network: the work of experiments on jitter and energy.
#pragma once

#include <cstdint>
#include <memory>

#include "baregrad/nn.h"
#include "baregrad/optim.h"
#include "baregrad/tensor.h"

namespace baregrad::lab {

class SmallStep {
 public:
  static constexpr std::int64_t kBatch = 64;
  static constexpr const char* kText = "784-64-32-10, batch 64, SGD";

  explicit SmallStep(std::uint64_t seed);
  /// Forward, loss, backward, update.
  void run();

 private:
  std::shared_ptr<nn::Module> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  Tensor x_;
  Tensor y_;
};

}  // namespace baregrad::lab

// Every optimizer and schedule with settings, and PyTorch's results.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support.h"

namespace baregrad::test {

struct GoldenOptimizer {
  const char* name;
  std::function<Made(const Tensors&)> make;
  std::vector<double> f64;  // 7 elements after 100 steps
  std::vector<double> f32;
};

using Scheduled = std::unique_ptr<optim::LRScheduler>;
struct GoldenSchedule {
  const char* name;
  std::function<Scheduled(Optimizer&)> make;
  std::vector<double> lr;        // of an SGD that started with 0.1, at step 0, 1, ...
  std::vector<double> momentum;  // of one that started with 0.9
};

struct GoldenPlateau {
  const char* name;
  optim::PlateauOptions options;
  std::vector<double> lr;  // after each metric
};

const std::vector<GoldenOptimizer>& golden_optimizers();
const std::vector<GoldenSchedule>& golden_schedules();
const std::vector<GoldenPlateau>& golden_plateaus();
const std::vector<double>& golden_metrics();

}  // namespace baregrad::test

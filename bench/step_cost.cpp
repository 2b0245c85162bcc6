// Counts the cost of a training step.
#include "bench/step_cost.h"

#include <cstddef>

#include <sys/resource.h>

namespace baregrad::bench {

PageFaults page_faults() noexcept {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {usage.ru_minflt, usage.ru_majflt};
}

double mlp_step_flops(const std::vector<std::int64_t>& sizes, std::int64_t batch) {
  double flops = 0;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    const double product = 2.0 * static_cast<double>(batch * sizes[i] * sizes[i + 1]);
    flops += product * (i == 0 ? 2 : 3);
  }
  return flops;
}

}  // namespace baregrad::bench

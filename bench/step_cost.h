// The cost of a training step: arithmetic, from its sizes; page faults, from the kernel.
#pragma once

#include <cstdint>
#include <vector>

namespace baregrad::bench {

/// Page faults of this process, all threads, since its start. Minor: the page was created or found
/// in memory.
struct PageFaults {
  std::int64_t minor = 0;
  std::int64_t major = 0;
};
PageFaults page_faults() noexcept;

/// Floating-point operations of the products in forward and backward of linear layers. The first
/// layer's input needs no gradient.
double mlp_step_flops(const std::vector<std::int64_t>& sizes, std::int64_t batch);

}  // namespace baregrad::bench

// What a training step asks of the machine: arithmetic, by its sizes; pages, by the kernel's count.
#pragma once

#include <cstdint>
#include <vector>

namespace baregrad::bench {

/// Of this process, all threads, since it began. Minor: the page was made or found in memory.
struct PageFaults {
  std::int64_t minor = 0;
  std::int64_t major = 0;
};
PageFaults page_faults() noexcept;

/// Floating-point operations of the products in forward and backward of linear layers; the first
/// layer's input wants no gradient.
double mlp_step_flops(const std::vector<std::int64_t>& sizes, std::int64_t batch);

}  // namespace baregrad::bench

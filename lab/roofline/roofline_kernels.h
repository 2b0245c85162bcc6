// The engine's kernels as points of the roofline.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/work.h"

namespace baregrad::lab {

struct RooflineKernel {
  std::string name;   ///< "softmax"
  std::string shape;  ///< "[4096, 1024]"
  std::function<void()> run;
  /// Counted by hand where the work is not an op, so that the profiler does not count it.
  std::optional<profile::Work> by_hand = {};
  bool in_place = false;  ///< updates in place
};

/// Makes its inputs on demand, so that only those of one kernel are alive.
struct RooflineRow {
  const char* key;
  RooflineKernel (*make)(bool quick, std::uint64_t seed);
};

/// Elementwise work appears twice: on at most a megabyte, and on far more than the caches hold.
/// Kernels that only move numbers come last: they have bytes but no operations.
const std::vector<RooflineRow>& roofline_rows();

}  // namespace baregrad::lab

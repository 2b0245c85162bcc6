// The engine's kernels as points of the roofline.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "profile/work.h"

namespace baregrad::lab {

struct RooflineKernel {
  std::string name;   ///< "softmax"
  std::string shape;  ///< "[4096, 1024]"
  std::function<void()> run;
  /// Where the profiler counts nothing, since the work is no op: counted by hand.
  std::optional<profile::Work> by_hand = {};
  bool in_place = false;  ///< writes where it reads
};

/// Makes its inputs when asked for, so that only those of one kernel are alive.
struct RooflineRow {
  const char* key;
  RooflineKernel (*make)(bool quick, std::uint64_t seed);
};

/// Elementwise work twice: on a megabyte or less, and on far more than caches hold. Those that only
/// move numbers come last: they have bytes and no operations.
const std::vector<RooflineRow>& roofline_rows();

}  // namespace baregrad::lab

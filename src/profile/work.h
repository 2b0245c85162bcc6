// The operations and bytes of an op, counted as described in profile.h.
#pragma once

#include <cstdint>
#include <span>

#include "ops/dispatch.h"

namespace baregrad::profile {

struct Work {
  std::uint64_t flops = 0;
  std::uint64_t bytes = 0;
};

Work work_of(const OpCall& call, std::span<const Tensor> results);

}  // namespace baregrad::profile

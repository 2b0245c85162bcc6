// The caches and the memory as sizes to work on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/machine.h"

namespace baregrad::lab {

struct MemoryLevel {
  std::string name;   ///< "L1", "L2", "L3", "memory"
  std::size_t holds;  ///< bytes for one thread; "memory" holds all
  std::size_t work;   ///< bytes to go over, by all threads together, to meet this level
};

/// Smallest first. Half of each cache is gone over, those of a core by each thread; memory is what
/// no cache holds, but never more than a quarter of what there is.
std::vector<MemoryLevel> memory_levels(const bench::Machine& machine, int threads);

/// The smallest level that holds `bytes`.
const MemoryLevel& level_of(const std::vector<MemoryLevel>& levels, std::uint64_t bytes);

/// 4 KiB and up, each `steps` to a doubling up to 32 MiB and one to a doubling beyond, up to `most`
/// or a quarter of the memory.
std::vector<std::size_t> working_sets(const bench::Machine& machine, int steps, std::size_t most);

}  // namespace baregrad::lab

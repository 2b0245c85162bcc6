// Working sets for each cache level and for memory.
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
  std::size_t work;   ///< working set of all threads together that exercises this level
};

/// Smallest first. The working set is half of each cache, times the threads for caches of a core.
/// The memory level exceeds all caches, but is at most a quarter of the memory.
std::vector<MemoryLevel> memory_levels(const bench::Machine& machine, int threads);

/// The smallest level that holds `bytes`.
const MemoryLevel& level_of(const std::vector<MemoryLevel>& levels, std::uint64_t bytes);

/// Sizes from 4 KiB: `steps` per doubling up to 32 MiB and one per doubling beyond, up to `most` or
/// a quarter of the memory.
std::vector<std::size_t> working_sets(const bench::Machine& machine, int steps, std::size_t most);

}  // namespace baregrad::lab

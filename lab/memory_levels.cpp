// Computes sizes from the machine's description.
#include "lab/memory_levels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/ceilings.h"

namespace baregrad::lab {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kSmallest = 4UL << 10;
// Beyond this, the only level left on all machines is memory.
constexpr std::size_t kFine = 32UL << 20;

std::size_t quarter_of_memory(const bench::Machine& machine) {
  // 0: the system does not say.
  return machine.memory_bytes == 0 ? std::numeric_limits<std::size_t>::max()
                                   : machine.memory_bytes / 4;
}

/// Whether the system reports a cache of this level. If it reports none at all, typical sizes are
/// used.
bool has_cache(const bench::Machine& machine, int level) {
  return machine.caches.empty() ||
         std::any_of(machine.caches.begin(), machine.caches.end(), [&](const bench::Cache& c) {
           return c.level == level && c.type != "instruction";
         });
}

}  // namespace

std::vector<MemoryLevel> memory_levels(const bench::Machine& machine, int threads) {
  std::vector<MemoryLevel> levels;
  constexpr const char* kNames[] = {"L1", "L2", "L3"};
  for (int level = 1; level <= 3; ++level) {
    if (!has_cache(machine, level)) continue;
    const std::size_t bytes = bench::data_cache_bytes(machine, level);
    const auto owners = static_cast<std::size_t>(level < 3 ? threads : 1);
    levels.push_back({kNames[level - 1], bytes, bytes / 2 * owners});
  }
  levels.push_back({"memory", std::numeric_limits<std::size_t>::max(),
                    std::min(bench::beyond_caches(machine), quarter_of_memory(machine))});
  return levels;
}

const MemoryLevel& level_of(const std::vector<MemoryLevel>& levels, std::uint64_t bytes) {
  return *std::find_if(levels.begin(), levels.end() - 1,
                       [&](const MemoryLevel& level) { return bytes <= level.holds; });
}

std::vector<std::size_t> working_sets(const bench::Machine& machine, int steps, std::size_t most) {
  const std::size_t limit = std::max(kSmallest, std::min(most, quarter_of_memory(machine)));
  std::vector<std::size_t> sizes;
  for (int i = 0;; ++i) {
    const double exact = static_cast<double>(kSmallest) * std::exp2(static_cast<double>(i) / steps);
    const std::size_t bytes = static_cast<std::size_t>(exact) / kLine * kLine;
    if (bytes > limit) return sizes;
    if (bytes <= kFine || i % steps == 0) sizes.push_back(bytes);
  }
}

}  // namespace baregrad::lab

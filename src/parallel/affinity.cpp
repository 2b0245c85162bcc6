// Affinity masks of threads.
#include "parallel/affinity.h"

#include <algorithm>
#include <cstddef>
#include <thread>

#include <sched.h>

namespace baregrad::parallel {

int cores_in_affinity_mask() noexcept {
  // The kernel refuses a mask shorter than its own; no machine has more than a few thousand CPUs.
  for (int bits = 1024; bits <= (1 << 20); bits *= 4) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(bits));
    if (set == nullptr) break;
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(bits));
    const int count = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void leave_core(pid_t thread, int core) noexcept {
  cpu_set_t allowed;
  if (sched_getaffinity(thread, sizeof allowed, &allowed) != 0) return;
  if (!CPU_ISSET(core, &allowed)) return;
  cpu_set_t others = allowed;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0) return;
  if (sched_setaffinity(thread, sizeof others, &others) != 0) return;
  cpu_set_t now;
  if (sched_getaffinity(thread, sizeof now, &now) == 0 && CPU_EQUAL(&now, &others)) {
    sched_setaffinity(thread, sizeof allowed, &allowed);
  }
}

}  // namespace baregrad::parallel

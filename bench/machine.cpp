// Machine description from /proc, sysfs and sysconf; cache sizes as the engine uses them.
#include "bench/machine.h"

#include <algorithm>
#include <fstream>
#include <set>

#include <sched.h>
#include <unistd.h>

#include "core/cache_sizes.h"

namespace baregrad::bench {
namespace {

const std::string kCpuFolder = "/sys/devices/system/cpu/cpu";

/// The first line of a file, empty when there is none.
std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string::npos && colon + 2 < line.size()) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

const char* type_name(CacheKind kind) {
  switch (kind) {
    case CacheKind::Data:
      return "data";
    case CacheKind::Instruction:
      return "instruction";
    case CacheKind::Unified:
      break;
  }
  return "unified";
}

int count_cores(int logical) {
  std::set<std::string> cores;
  for (int cpu = 0; cpu < logical; ++cpu) {
    const std::string folder = kCpuFolder + std::to_string(cpu) + "/topology/";
    std::string siblings = first_line(folder + "core_cpus_list");
    if (siblings.empty()) siblings = first_line(folder + "thread_siblings_list");
    if (!siblings.empty()) cores.insert(siblings);
  }
  return static_cast<int>(cores.size());
}

}  // namespace

Machine describe_machine() {
  Machine machine{};
  machine.cpu = cpu_model();
  machine.logical_cpus = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  machine.physical_cores = count_cores(machine.logical_cpus);
  cpu_set_t usable;
  machine.usable_cpus =
      sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : machine.logical_cpus;
  machine.memory_bytes = static_cast<std::size_t>(std::max(0L, sysconf(_SC_PHYS_PAGES))) *
                         static_cast<std::size_t>(std::max(0L, sysconf(_SC_PAGESIZE)));
  for (const baregrad::Cache& cache : caches()) {
    machine.caches.push_back({cache.level, type_name(cache.kind), cache.bytes, cache.shared_by});
  }
  return machine;
}

std::size_t data_cache_bytes(const Machine& machine, int level) {
  for (const Cache& cache : machine.caches) {
    if (cache.level == level && cache.type != "instruction") return cache.bytes;
  }
  return level <= 1 ? kUsualCacheSizes.l1 : level == 2 ? kUsualCacheSizes.l2 : kUsualCacheSizes.l3;
}

std::string describe_build() {
#if defined(__clang__)
  const std::string compiler = "Clang " __clang_version__;
#else
  const std::string compiler = "GCC " __VERSION__;
#endif
#if defined(__OPTIMIZE__) && defined(NDEBUG)
  return compiler + ", optimised";
#else
  return compiler + ", not optimised: its timings mean little";
#endif
}

}  // namespace baregrad::bench

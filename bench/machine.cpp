// Machine description from /proc, sysfs and sysconf.
#include "bench/machine.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <string_view>

#include <sched.h>
#include <unistd.h>

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

int number_or(std::string_view text, int otherwise) {
  int value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// How many CPUs a list such as "0-3,8" names.
int count_list(std::string_view list) {
  int count = 0;
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    const int first = number_or(item, -1);
    if (first < 0) return 0;
    const std::size_t dash = item.find('-');
    count +=
        dash == std::string_view::npos ? 1 : number_or(item.substr(dash + 1), first) - first + 1;
  }
  return count;
}

/// "512K", "32M" or plain bytes.
std::size_t parse_size(std::string_view text) {
  std::size_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value).ptr;
  const char unit = end == text.data() + text.size() ? ' ' : *end;
  return value << (unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0);
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

std::vector<Cache> caches_of_sysfs() {
  std::vector<Cache> caches;
  for (int i = 0;; ++i) {
    const std::string folder = kCpuFolder + "0/cache/index" + std::to_string(i) + "/";
    const int level = number_or(first_line(folder + "level"), 0);
    if (level == 0) break;
    std::string type = first_line(folder + "type");
    std::transform(type.begin(), type.end(), type.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    const std::size_t bytes = parse_size(first_line(folder + "size"));
    if (bytes != 0) {
      caches.push_back({level, type, bytes, count_list(first_line(folder + "shared_cpu_list"))});
    }
  }
  return caches;
}

// Containers may hide sysfs; the C library asks the CPU itself.
std::vector<Cache> caches_of_sysconf() {
  struct Known {
    int level;
    const char* type;
    int name;
  };
  std::vector<Cache> caches;
#ifdef _SC_LEVEL1_DCACHE_SIZE
  for (const Known& known :
       {Known{1, "data", _SC_LEVEL1_DCACHE_SIZE}, Known{1, "instruction", _SC_LEVEL1_ICACHE_SIZE},
        Known{2, "unified", _SC_LEVEL2_CACHE_SIZE}, Known{3, "unified", _SC_LEVEL3_CACHE_SIZE}}) {
    const long bytes = sysconf(known.name);
    if (bytes > 0) caches.push_back({known.level, known.type, static_cast<std::size_t>(bytes), 0});
  }
#endif
  return caches;
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
  machine.caches = caches_of_sysfs();
  if (machine.caches.empty()) machine.caches = caches_of_sysconf();
  std::stable_sort(machine.caches.begin(), machine.caches.end(),
                   [](const Cache& a, const Cache& b) { return a.level < b.level; });
  return machine;
}

std::size_t data_cache_bytes(const Machine& machine, int level) {
  for (const Cache& cache : machine.caches) {
    if (cache.level == level && cache.type != "instruction") return cache.bytes;
  }
  constexpr std::size_t kUsual[] = {32UL << 10, 512UL << 10, 16UL << 20};
  return kUsual[std::clamp(level, 1, 3) - 1];
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

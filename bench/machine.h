// What the system reports about the machine. Its speed is measured: see ceilings.h.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace baregrad::bench {

struct Cache {
  int level;
  std::string type;  ///< "data", "instruction" or "unified"
  std::size_t bytes;
  int shared_by;  ///< logical CPUs that share one cache; 0: unknown
};

struct Machine {
  std::string cpu;  ///< "unknown" when the system does not say
  int logical_cpus;
  int physical_cores;  ///< 0 when unknown
  int usable_cpus;     ///< that this process may run on
  std::size_t memory_bytes;
  std::vector<Cache> caches;  ///< smallest level first; empty when the system does not say
};

Machine describe_machine();

/// Bytes of the first data or unified cache of `level`, or a typical size when it is unknown.
std::size_t data_cache_bytes(const Machine& machine, int level);

/// "GCC 12.2.0, optimised"
std::string describe_build();

}  // namespace baregrad::bench

// What the machine can do, measured: multiply-adds per second and bytes per second.
#pragma once

#include <cstddef>

#include "bench/machine.h"

namespace baregrad::bench {

enum class Stream { Read, Copy, Add };

const char* stream_name(Stream stream);

/// The best of many short runs with the instruction set in use, in GFLOP/s. One run goes over
/// `threads` threads at once. `bits`: 32 or 64.
double fma_gflop_per_s(int bits, int threads, double seconds);

/// The best of many short runs, in GB/s (10^9 bytes read and written, as asked for), over memory of
/// `bytes` in all, divided among the threads, already touched.
double stream_gb_per_s(Stream stream, std::size_t bytes, int threads, double seconds);

/// So much memory that no cache of this machine helps.
std::size_t beyond_caches(const Machine& machine);

/// How far the threads are worth looking at: one cache level or memory.
struct Level {
  const char* name;   ///< "L1", "L2", "L3", "memory"
  std::size_t bytes;  ///< to go over with `threads` threads
};
/// Half of each cache, and memory beyond all. L1 and L2 are each core's own, L3 is shared.
std::vector<Level> memory_levels(const Machine& machine, int threads);

}  // namespace baregrad::bench

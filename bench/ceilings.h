// Ceilings of the machine, measured: multiply-adds per second and bytes per second.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "bench/machine.h"

namespace baregrad::bench {

/// Update: read and written in place.
enum class Stream { Read, Copy, Add, Update };

const char* stream_name(Stream stream);

/// The best of many short runs with the instruction set in use, in GFLOP/s. Each run uses `threads`
/// threads at once. `bits`: 32 or 64.
double fma_gflop_per_s(int bits, int threads, double seconds);

/// The best of many short runs, in GB/s (10^9 bytes that the program reads and writes). The `bytes`
/// of memory are divided among the threads, already touched, and on pages of the size that tensors
/// of so many bytes have.
double stream_gb_per_s(Stream stream, std::size_t bytes, int threads, double seconds);

/// A size so large that no cache of this machine helps.
std::size_t beyond_caches(const Machine& machine);

/// All ceilings, with one thread and with `threads`. Takes about two seconds.
struct FmaCeiling {
  int bits;
  int threads;
  double gflop_per_s;
};
struct StreamCeiling {
  Stream stream;
  const char* level;  ///< "L1", "L2", "L3": half of that cache; "memory": beyond all of them
  std::size_t bytes;  ///< bytes walked; with several threads L1 and L2 count once per thread
  int threads;
  double gb_per_s;
};
struct MeasuredCeilings {
  std::vector<FmaCeiling> fma;
  std::vector<StreamCeiling> streams;
};
MeasuredCeilings measure_ceilings(const Machine& machine, int threads,
                                  const std::function<void(const std::string&)>& progress = {});

}  // namespace baregrad::bench

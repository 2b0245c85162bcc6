// Valgrind's Callgrind: a simulation of two levels of cache and of a branch predictor, which counts
// what a program does on machines that give no counters. It knows no prefetching and no third
// level.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/machine.h"
#include "lab/counting/counts.h"
#include "lab/counting/trial.h"

namespace baregrad::lab::callgrind {

// Requests to the Callgrind that runs this program; without one they do nothing.
void start();   ///< simulates from here on, with empty caches
void stop();    ///< runs on without simulating, much faster
void forget();  ///< all counts become zero; the caches stay as they are
void write();   ///< writes the counts to the next file

/// What is simulated.
struct Cache {
  std::size_t bytes;
  int ways;
  std::size_t line_bytes;
  /// "32768,8,64"
  std::string option() const;
};
struct Caches {
  Cache instructions;
  Cache data;
  Cache last;
};
/// The nearest to a real cache that Callgrind takes: it wants 2^k sets.
Cache nearest_cache(std::size_t bytes);
/// Of this machine. The last level is at most 32 MiB: what lies beyond it would take too long.
Caches choose_caches(const bench::Machine& machine);

/// Reads a file that Callgrind wrote. Throws ValueError that says what is wrong with it.
Counts parse(std::string_view text);

/// Runs trials in a process of its own, one result for each. A trial that ends the process is
/// without counts, and those behind it get a new process.
std::vector<Counted> count(std::span<const TrialRun> runs, const Caches& caches);
/// Why it cannot be used here, or empty: tries it on a trial that does nothing.
std::string why_not(const Caches& caches);

}  // namespace baregrad::lab::callgrind

// Valgrind's Callgrind simulates two levels of cache and a branch predictor, and counts events on
// machines without hardware counters. It simulates neither prefetching nor a third level.
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

// Requests to the Callgrind that runs this program. Without Callgrind they do nothing.
void start();   ///< simulates from here on, starting with empty caches
void stop();    ///< continues without simulation, much faster
void forget();  ///< sets all counts to zero; the caches stay
void write();   ///< writes the counts to the next file

/// A simulated cache.
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
/// The nearest to a real cache that Callgrind supports: the number of sets must be a power of two.
Cache nearest_cache(std::size_t bytes);
/// The caches of this machine. The last level is limited to 32 MiB: working sets beyond a larger
/// one would take too long.
Caches choose_caches(const bench::Machine& machine);

/// Reads an output file of Callgrind. Throws ValueError that says what is wrong with it.
Counts parse(std::string_view text);

/// Runs trials in a separate process, with one result for each. A trial that ends the process has
/// no counts, and those after it get a new process.
std::vector<Counted> count(std::span<const TrialRun> runs, const Caches& caches);
/// The reason why it cannot be used here, or empty. Runs a trial without work to find out.
std::string why_not(const Caches& caches);

}  // namespace baregrad::lab::callgrind

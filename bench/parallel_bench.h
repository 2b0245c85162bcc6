// Fork-join latency of our pool beside OpenMP's, in one run.
#pragma once

#include <chrono>
#include <vector>

namespace baregrad::bench {

/// Nanoseconds from entering a parallel region to leaving it.
struct ForkJoin {
  int threads;
  int samples;  ///< at least so many of each, of 20 regions (after a pause: of one)
  double ours_ns_median, ours_p10, ours_p90;
  double openmp_median, openmp_p10, openmp_p90;
};

/// `rounds`: how often the two take turns.
///
/// Regions with an empty body, one chunk or iteration per thread, back to back. A thread of ours
/// that finds a chunk unclaimed takes it, so the caller may finish such a region by itself.
std::vector<ForkJoin> measure_fork_join(const std::vector<int>& thread_counts, int rounds = 30);

/// The same, but no body returns before all of them have begun: every thread has to show up, as it
/// does when the chunks are long.
std::vector<ForkJoin> measure_fork_join_all_present(const std::vector<int>& thread_counts,
                                                    int rounds = 30);

/// Regions that give each thread `work` to do, each after a `pause` in which the caller computes by
/// itself: longer than threads spin, it has them asleep.
std::vector<ForkJoin> measure_after_pause(const std::vector<int>& thread_counts,
                                          std::chrono::microseconds work,
                                          std::chrono::microseconds pause, int rounds = 30);

}  // namespace baregrad::bench

// Fork-join latency of our pool beside OpenMP's, in one run.
#pragma once

#include <chrono>
#include <vector>

namespace baregrad::bench {

/// Nanoseconds from entering a parallel region to leaving it.
struct ForkJoin {
  int threads;
  int samples;  ///< at least so many samples of each; one sample is 20 regions (after a pause: one)
  double ours_ns_median, ours_p10, ours_p90;
  double openmp_median, openmp_p10, openmp_p90;
};

/// `rounds`: the number of turns of each.
///
/// Regions have an empty body and one chunk or iteration per thread, and follow each other
/// directly. A thread of our pool takes any unclaimed chunk, so the caller may finish such a region
/// alone.
std::vector<ForkJoin> measure_fork_join(const std::vector<int>& thread_counts, int rounds = 30);

/// The same, but no body returns before all have begun: every thread must take part, as it does
/// when chunks are long.
std::vector<ForkJoin> measure_fork_join_all_present(const std::vector<int>& thread_counts,
                                                    int rounds = 30);

/// Each region gives each thread `work` to do and follows a `pause` in which the caller computes. A
/// pause longer than the spinning puts the workers to sleep.
std::vector<ForkJoin> measure_after_pause(const std::vector<int>& thread_counts,
                                          std::chrono::microseconds work,
                                          std::chrono::microseconds pause, int rounds = 30);

}  // namespace baregrad::bench

// Amdahl's law fitted to times: T(p) = T(1) (s + (1 - s) / p) on p threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace baregrad::lab {

struct ThreadTimes {
  int threads;
  std::vector<double> samples_ns;
};

inline constexpr double kConfidence = 0.95;

struct AmdahlFit {
  /// s, the part of the time on one thread that more threads do not shorten. Below 0 where threads
  /// bring more than their number, as when each has a cache of its own; above 1 where they cost.
  double serial_fraction;
  /// The middle kConfidence of what other samples might have given, by bootstrap.
  double low;
  double high;
  double one_thread_ns;
  /// Root mean square of the relative distance between the law and the medians; 0 on two counts,
  /// through which the law always passes.
  double misfit;
  int points;  ///< counts of threads
};

/// By least squares of relative distances to the medians. Throws ValueError unless there are two
/// counts of threads, each with samples.
AmdahlFit fit_amdahl(std::span<const ThreadTimes> times, std::uint64_t seed, int resamples = 2000);

}  // namespace baregrad::lab

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
  /// s, the part of the time on one thread that more threads do not shorten. Below 0 where the
  /// speedup exceeds the number of threads, for example because each has its own cache; above 1
  /// where threads make it slower.
  double serial_fraction;
  /// The middle kConfidence of the values from resampled data (bootstrap).
  double low;
  double high;
  double one_thread_ns;
  /// Root mean square of the relative distance between the law and the medians; 0 for two thread
  /// counts, through which the law always passes.
  double misfit;
  int points;  ///< counts of threads
};

/// Fits by least squares of relative distances to the medians. Throws ValueError unless there are
/// two thread counts, each with samples.
AmdahlFit fit_amdahl(std::span<const ThreadTimes> times, std::uint64_t seed, int resamples = 2000);

}  // namespace baregrad::lab

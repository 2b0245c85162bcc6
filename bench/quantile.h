// Quantiles of samples, for benchmarks and the lab.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace baregrad::bench {

/// The sample nearest to quantile q. `sorted` is ascending and not empty.
inline double quantile(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<std::size_t>(std::lround(q * static_cast<double>(sorted.size() - 1)))];
}

}  // namespace baregrad::bench

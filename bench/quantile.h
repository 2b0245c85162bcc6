// Quantiles of samples, as benchmarks and the lab report them.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace baregrad::bench {

/// The sample nearest to quantile q of at least one, in order.
inline double quantile(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<std::size_t>(std::lround(q * static_cast<double>(sorted.size() - 1)))];
}

}  // namespace baregrad::bench

// The kernel of normal_quantile.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "backends/cpu/irregular/irregular.h"
#include "parallel/parallel_for.h"

namespace baregrad::kernels {

namespace {

// Each element takes several logarithms and exponentials.
constexpr std::int64_t kQuantileGrain = 1024;

/// Of the standard normal distribution; exact to the last bits for negative x.
double cumulative(double x) { return 0.5 * std::erfc(-x * std::numbers::sqrt2 / 2); }

/// The x in [low, high] with cumulative(x) = p: Newton's steps on the logarithm, which is concave
/// and keeps its slope in the tail; halving where a step would leave the bracket.
double inverse_cumulative(double p, double low, double high) {
  const double wanted = std::log(p);
  double x = std::clamp(0.0, low, high);
  for (int step = 0; step < 100; ++step) {
    const double reached = cumulative(x);
    const double error = std::log(reached) - wanted;
    (error > 0 ? high : low) = x;
    const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    double next = x - error * reached / density;
    if (!(next > low && next < high)) next = low + (high - low) / 2;
    if (std::fabs(next - x) <= 1e-15 * std::max(1.0, std::fabs(x))) return next;
    x = next;
  }
  return x;
}

}  // namespace

void normal_quantile_kernel(const Call& call) {
  const double low = call.attrs.as<NumbersAttrs>().values[0];
  const double high = call.attrs.as<NumbersAttrs>().values[1];
  const auto* p = static_cast<const double*>(call.in[0].data);
  auto* out = static_cast<double*>(call.out[0].data);
  parallel::parallel_for(numel(call.out[0]), kQuantileGrain,
                         [=](std::int64_t begin, std::int64_t end) {
                           for (std::int64_t i = begin; i < end; ++i) {
                             out[i] = p[i] > 0 ? inverse_cumulative(p[i], low, high) : low;
                           }
                         });
}

}  // namespace baregrad::kernels

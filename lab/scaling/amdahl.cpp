// Least squares of two unknowns, and a bootstrap.
#include "lab/scaling/amdahl.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "baregrad/error.h"

namespace baregrad::lab {
namespace {

/// T(p) = fixed + divided / p.
struct Law {
  double fixed;
  double divided;

  double serial_fraction() const { return fixed / (fixed + divided); }
  double at(int threads) const { return fixed + divided / threads; }
};

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// Minimises the sum of ((fixed + divided / p - t) / t)^2: two linear equations.
Law fit(std::span<const ThreadTimes> times, const std::vector<double>& medians) {
  double ff = 0;
  double fd = 0;
  double dd = 0;
  double f = 0;
  double d = 0;
  for (std::size_t i = 0; i < medians.size(); ++i) {
    const double fixed = 1 / medians[i];
    const double divided = fixed / times[i].threads;
    ff += fixed * fixed;
    fd += fixed * divided;
    dd += divided * divided;
    f += fixed;
    d += divided;
  }
  const double determinant = ff * dd - fd * fd;
  return {(f * dd - d * fd) / determinant, (d * ff - f * fd) / determinant};
}

std::vector<double> draw_medians(std::span<const ThreadTimes> times, std::mt19937_64& random) {
  std::vector<double> medians;
  std::vector<double> drawn;
  for (const ThreadTimes& each : times) {
    drawn.resize(each.samples_ns.size());
    for (double& value : drawn) value = each.samples_ns[random() % each.samples_ns.size()];
    medians.push_back(median(drawn));
  }
  return medians;
}

void check(std::span<const ThreadTimes> times) {
  bool two = false;
  for (const ThreadTimes& each : times) {
    if (each.threads < 1 || each.samples_ns.empty()) {
      throw ValueError("fit_amdahl: every count of threads is at least 1 and has samples");
    }
    two = two || each.threads != times.front().threads;
  }
  if (!two) throw ValueError("fit_amdahl: takes times of at least two counts of threads");
}

double misfit_of(const Law& law, std::span<const ThreadTimes> times,
                 const std::vector<double>& medians) {
  double sum = 0;
  for (std::size_t i = 0; i < medians.size(); ++i) {
    const double distance = law.at(times[i].threads) / medians[i] - 1;
    sum += distance * distance;
  }
  return std::sqrt(sum / static_cast<double>(medians.size()));
}

}  // namespace

AmdahlFit fit_amdahl(std::span<const ThreadTimes> times, std::uint64_t seed, int resamples) {
  check(times);
  std::vector<double> medians;
  for (const ThreadTimes& each : times) {
    std::vector<double> samples = each.samples_ns;
    medians.push_back(median(samples));
  }
  const Law law = fit(times, medians);
  std::mt19937_64 random(seed);
  std::vector<double> fractions;
  for (int i = 0; i < resamples; ++i) {
    fractions.push_back(fit(times, draw_medians(times, random)).serial_fraction());
  }
  std::sort(fractions.begin(), fractions.end());
  const auto quantile = [&](double q) {
    return fractions[static_cast<std::size_t>(
        std::lround(q * static_cast<double>(fractions.size() - 1)))];
  };
  return {law.serial_fraction(),           quantile((1 - kConfidence) / 2),
          quantile((1 + kConfidence) / 2), law.at(1),
          misfit_of(law, times, medians),  static_cast<int>(times.size())};
}

}  // namespace baregrad::lab

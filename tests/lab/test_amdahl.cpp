// The fit of Amdahl's law, on times computed from the law.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "lab/scaling/amdahl.h"

namespace baregrad::lab {
namespace {

double law(double serial, int threads) { return 1e6 * (serial + (1 - serial) / threads); }

/// Samples around the law, with normally distributed relative errors.
std::vector<ThreadTimes> times_of(double serial, const std::vector<int>& counts, double noise,
                                  int samples, unsigned seed = 7) {
  std::mt19937 random(seed);
  std::normal_distribution<double> error(0, noise);
  std::vector<ThreadTimes> times;
  for (const int threads : counts) {
    times.push_back({threads, {}});
    for (int i = 0; i < samples; ++i) {
      times.back().samples_ns.push_back(law(serial, threads) * (1 + error(random)));
    }
  }
  return times;
}

TEST(Amdahl, AKnownFractionIsFoundExactlyWithoutNoise) {
  for (const double serial : {0.0, 0.05, 0.3, 0.9, 1.0, -0.1, 1.2}) {
    for (const std::vector<int>& counts :
         {std::vector<int>{1, 2}, std::vector<int>{1, 2, 3, 4}, std::vector<int>{2, 16, 64}}) {
      const AmdahlFit fit = fit_amdahl(times_of(serial, counts, 0, 3), 1, 50);
      EXPECT_NEAR(fit.serial_fraction, serial, 1e-9);
      EXPECT_NEAR(fit.low, serial, 1e-9);
      EXPECT_NEAR(fit.high, serial, 1e-9);
      EXPECT_NEAR(fit.one_thread_ns, 1e6, 1e-3);
      EXPECT_NEAR(fit.misfit, 0, 1e-12);
      EXPECT_EQ(fit.points, static_cast<int>(counts.size()));
    }
  }
}

TEST(Amdahl, TheIntervalHoldsTheTruthAndGrowsWithTheNoise) {
  int held = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const auto times = times_of(0.2, {1, 2, 4, 8}, 0.02, 40, seed);
    const AmdahlFit fit = fit_amdahl(times, 1, 400);
    EXPECT_LE(fit.low, fit.serial_fraction);
    EXPECT_GE(fit.high, fit.serial_fraction);
    held += fit.low <= 0.2 && 0.2 <= fit.high ? 1 : 0;
  }
  EXPECT_GE(held, 85);  // of 100 at a stated 95 %
  const AmdahlFit calm = fit_amdahl(times_of(0.2, {1, 2, 4, 8}, 0.01, 40), 1);
  const AmdahlFit noisy = fit_amdahl(times_of(0.2, {1, 2, 4, 8}, 0.1, 40), 1);
  EXPECT_GT(noisy.high - noisy.low, 3 * (calm.high - calm.low));
}

TEST(Amdahl, SameSeedSameInterval) {
  const auto times = times_of(0.4, {1, 2}, 0.1, 10);
  EXPECT_EQ(fit_amdahl(times, 3).low, fit_amdahl(times, 3).low);
  EXPECT_NE(fit_amdahl(times, 3, 50).low, fit_amdahl(times, 4, 50).low);
}

TEST(Amdahl, MisfitShowsTimesThatFollowAnotherLaw) {
  // Two memory channels: perfect speedup up to two threads, none beyond.
  const std::vector<ThreadTimes> times = {{1, {8.0}}, {2, {4.0}}, {4, {4.0}}, {8, {4.0}}};
  EXPECT_GT(fit_amdahl(times, 1, 10).misfit, 0.05);
}

TEST(Amdahl, OneCountOfThreadsIsRefused) {
  EXPECT_THROW(fit_amdahl({}, 1), ValueError);
  EXPECT_THROW(fit_amdahl(times_of(0.5, {2}, 0, 3), 1), ValueError);
  EXPECT_THROW(fit_amdahl(times_of(0.5, {2, 2}, 0, 3), 1), ValueError);
  EXPECT_THROW(fit_amdahl(times_of(0.5, {1, 2}, 0, 0), 1), ValueError);
}

}  // namespace
}  // namespace baregrad::lab

// Times a chain of additions.
#include "lab/ceilings/clock_rate.h"

#include <chrono>
#include <cstdint>

#include "bench/harness.h"

namespace baregrad::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kUnroll = 64;  // the loop counter runs in parallel to the chain
constexpr std::int64_t kTurns = 10'000;

// The empty assembly prevents the compiler from merging two additions. The addend is in a register,
// since some processors fold additions of constants.
[[gnu::noinline]] std::uint64_t add_chain(std::uint64_t x, std::uint64_t addend) {
  for (std::int64_t turn = 0; turn < kTurns; ++turn) {
#pragma GCC unroll 64
    for (int i = 0; i < kUnroll; ++i) {
      x += addend;
      asm volatile("" : "+r"(x));
    }
  }
  return x;
}

}  // namespace

std::vector<double> additions_per_ns(double seconds) {
  std::vector<double> rates;
  volatile std::uint64_t addend = 3;
  std::uint64_t x = add_chain(1, addend);
  const Clock::time_point begin = Clock::now();
  while (rates.size() < 3 ||
         std::chrono::duration<double>(Clock::now() - begin).count() < seconds) {
    const Clock::time_point start = Clock::now();
    x = add_chain(x, addend);
    const std::chrono::duration<double, std::nano> took = Clock::now() - start;
    rates.push_back(static_cast<double>(kTurns * kUnroll) / took.count());
  }
  bench::keep(x);
  return rates;
}

}  // namespace baregrad::lab

// Follows pointers in a random cycle.
#include "lab/ceilings/chase.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <new>
#include <numeric>
#include <random>
#include <string>

#include <sys/mman.h>

#include "bench/harness.h"

namespace baregrad::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kHugePage = 2UL << 20;
constexpr std::int64_t kWarmUp = 1 << 20;
// Long compared with reading the clock, short compared with the time between preemptions.
constexpr double kSampleNs = 20e3;

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

}  // namespace

std::vector<std::uint32_t> random_cycle(std::uint32_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> next(count);
  std::iota(next.begin(), next.end(), 0U);
  std::mt19937_64 random(seed);
  // Sattolo's shuffle: the partner is never the element itself, so the result is a single cycle.
  for (std::uint32_t i = count; i-- > 1;) {
    const auto partner = static_cast<std::uint32_t>(random() % i);
    std::swap(next[i], next[partner]);
  }
  return next;
}

Chase::Chase(std::size_t bytes, PageSize pages, std::uint64_t seed)
    : mapped_(bytes + kHugePage), lines_(static_cast<std::uint32_t>(bytes / sizeof(Line))) {
  mapping_ = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  // A kernel without huge pages refuses; the pages are then small, which huge_bytes() shows.
  static_cast<void>(
      ::madvise(mapping_, mapped_, pages == PageSize::Huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE));
  const auto address = reinterpret_cast<std::uintptr_t>(mapping_);
  auto* lines = reinterpret_cast<Line*>((address + kHugePage - 1) / kHugePage * kHugePage);
  const std::vector<std::uint32_t> next = random_cycle(lines_, seed);
  for (std::uint32_t i = 0; i < lines_; ++i) new (lines + i) Line{lines + next[i]};
  at_ = lines;
}

Chase::~Chase() { ::munmap(mapping_, mapped_); }

void Chase::follow(std::int64_t loads) {
  const Line* at = at_;
  for (std::int64_t i = 0; i < loads; ++i) at = at->next;
  at_ = at;
  bench::keep(at_);
}

Timing Chase::measure(double seconds) {
  Clock::time_point start = Clock::now();
  const std::int64_t warm_up = std::clamp<std::int64_t>(lines_, 4096, kWarmUp);
  follow(warm_up);
  const double per_load_ns = ns_since(start) / static_cast<double>(warm_up);
  const auto loads =
      static_cast<std::int64_t>(std::clamp(kSampleNs / std::max(per_load_ns, 0.1), 256.0, 65536.0));
  std::vector<double> samples;
  const Clock::time_point begin = Clock::now();
  while (samples.size() < 3 || ns_since(begin) < 1e9 * seconds) {
    start = Clock::now();
    follow(loads);
    samples.push_back(ns_since(start) / static_cast<double>(loads));
  }
  return summarize(std::move(samples));
}

std::size_t huge_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string word; file >> word;) {
    if (word != "AnonHugePages:") continue;
    std::size_t kilobytes = 0;
    file >> kilobytes;
    return kilobytes << 10;
  }
  return 0;
}

}  // namespace baregrad::lab

// Fork-join latency of our pool beside OpenMP's. OpenMP is a peer.
#include "parallel_bench.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "baregrad/parallel.h"
#include "bench/quantile.h"
#include "parallel/parallel_for.h"

namespace baregrad::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSamplesPerRound = 40;
constexpr int kRegionsPerSample = 20;  // reading the clock takes a tenth of the time of a region
constexpr int kWarmUpRegions = 200;
constexpr int kChunksOfWork = 16;  // per thread
constexpr std::chrono::microseconds kNoPause{0};
// A region takes microseconds. If other processes use the cores, this measures the scheduler; a
// turn must end in this case too.
constexpr std::chrono::milliseconds kWarmUp{20};
constexpr std::chrono::milliseconds kTurn{100};
// libgomp's workers spin for milliseconds after their last region, and would take a core from the
// next candidate.
constexpr std::chrono::milliseconds kSettle{20};

struct Empty {
  void operator()() const noexcept { asm volatile("" ::: "memory"); }
};

// Bounded, since parallel_for does not promise that chunks run at the same time.
struct AllPresent {
  std::atomic<int>& arrived;
  int goal;
  void operator()() const noexcept {
    arrived.fetch_add(1, std::memory_order_relaxed);
    for (int spins = 0; arrived.load(std::memory_order_relaxed) < goal && spins < 100'000;
         ++spins) {
      // With more threads than cores, a waiting body must yield to the others.
      if (spins % 256 == 255) std::this_thread::yield();
    }
  }
};

// A chain of dependent multiplications: its time is the same on every core, whatever the other
// cores do.
struct Work {
  std::int64_t steps;
  void operator()() const noexcept {
    std::uint64_t x = 1;
    for (std::int64_t i = 0; i < steps; ++i) {
      x *= 0x9e3779b97f4a7c15u;
      asm volatile("" : "+r"(x));
    }
  }
};

/// The number of steps that take about `time`, by the fastest of some tries.
Work work_of(std::chrono::nanoseconds time) {
  constexpr Work kTry{20'000};
  auto fastest = Clock::duration::max();
  for (int i = 0; i < 50; ++i) {
    const Clock::time_point start = Clock::now();
    kTry();
    fastest = std::min(fastest, Clock::now() - start);
  }
  return {kTry.steps * time / fastest};
}

// The caller computes during the pause, as a program does between two ops.
void pause_for(std::chrono::microseconds pause) {
  const Clock::time_point end = Clock::now() + pause;
  while (Clock::now() < end) {
  }
}

/// `pause` before every region; without one, regions follow each other directly.
template <class Region>
void sample(Region region, std::chrono::microseconds pause, std::vector<double>& ns) {
  std::this_thread::sleep_for(kSettle);
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < kWarmUpRegions && Clock::now() - begin < kWarmUp; ++i) region();
  for (int s = 0; s < kSamplesPerRound && (s == 0 || Clock::now() - begin < kTurn); ++s) {
    pause_for(pause);
    const int regions = pause.count() > 0 ? 1 : kRegionsPerSample;
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < regions; ++i) region();
    const std::chrono::duration<double, std::nano> took = Clock::now() - start;
    ns.push_back(took.count() / regions);
  }
}

template <class OurRegion, class OpenMpRegion>
ForkJoin interleave(int threads, std::chrono::microseconds pause, int rounds, OurRegion ours,
                    OpenMpRegion openmp) {
  std::vector<double> ours_ns;
  std::vector<double> openmp_ns;
  for (int round = 0; round < rounds; ++round) {
    sample(ours, pause, ours_ns);
    sample(openmp, pause, openmp_ns);
  }
  std::sort(ours_ns.begin(), ours_ns.end());
  std::sort(openmp_ns.begin(), openmp_ns.end());
  return {threads,
          static_cast<int>(std::min(ours_ns.size(), openmp_ns.size())),
          quantile(ours_ns, 0.5),
          quantile(ours_ns, 0.1),
          quantile(ours_ns, 0.9),
          quantile(openmp_ns, 0.5),
          quantile(openmp_ns, 0.1),
          quantile(openmp_ns, 0.9)};
}

/// `chunks` per thread.
template <class MakeBody>
std::vector<ForkJoin> measure(const std::vector<int>& thread_counts, int chunks,
                              std::chrono::microseconds pause, int rounds, MakeBody make_body) {
  struct Restore {
    int threads = get_num_threads();
    ~Restore() { set_num_threads(threads); }
  } restore;
  std::vector<ForkJoin> results;
  for (const int threads : thread_counts) {
    set_num_threads(threads);
    const auto ours = [&] {
      const auto body = make_body(threads);
      parallel::parallel_for(threads * chunks, 1, [&](std::int64_t, std::int64_t) { body(); });
    };
    const auto openmp = [&] {
      const auto body = make_body(threads);
#pragma omp parallel for schedule(static) num_threads(threads)
      for (int i = 0; i < threads * chunks; ++i) body();
    };
    results.push_back(interleave(threads, pause, rounds, ours, openmp));
  }
  return results;
}

}  // namespace

std::vector<ForkJoin> measure_fork_join(const std::vector<int>& thread_counts, int rounds) {
  return measure(thread_counts, 1, kNoPause, rounds, [](int) { return Empty{}; });
}

std::vector<ForkJoin> measure_fork_join_all_present(const std::vector<int>& thread_counts,
                                                    int rounds) {
  std::atomic<int> arrived{0};
  return measure(thread_counts, 1, kNoPause, rounds, [&arrived](int threads) {
    arrived.store(0, std::memory_order_relaxed);
    return AllPresent{arrived, threads};
  });
}

std::vector<ForkJoin> measure_after_pause(const std::vector<int>& thread_counts,
                                          std::chrono::microseconds work,
                                          std::chrono::microseconds pause, int rounds) {
  const Work chunk = work_of(std::chrono::nanoseconds(work) / kChunksOfWork);
  return measure(thread_counts, kChunksOfWork, pause, rounds, [chunk](int) { return chunk; });
}

}  // namespace baregrad::bench

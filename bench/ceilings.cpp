// Times the ceiling loops of the instruction set in use.
#include "bench/ceilings.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "backends/cpu/ceilings.h"
#include "backends/cpu/table.h"
#include "baregrad/allocator.h"
#include "bench/harness.h"
#include "parallel/parallel_for.h"

namespace baregrad::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Long enough for every thread to join, short enough to fall between two interrupts.
constexpr double kRunSeconds = 2e-3;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// `work(passes)` returns how much it did. Returns the greatest amount per second, over `seconds`.
template <class Work>
double best_rate(double seconds, Work work) {
  std::int64_t passes = 1;
  const Clock::time_point begin = Clock::now();
  double best = 0;
  for (bool calibrated = false;;) {
    const Clock::time_point start = Clock::now();
    const double done = work(passes);
    const double took = seconds_since(start);
    if (!calibrated && took < kRunSeconds / 2) {
      const double grow = kRunSeconds / std::max(took, kRunSeconds / 1000);
      passes =
          static_cast<std::int64_t>(static_cast<double>(passes) * std::clamp(grow, 2.0, 100.0));
      continue;
    }
    calibrated = true;
    best = std::max(best, done / took);
    if (seconds_since(begin) >= seconds) return best;
  }
}

/// Calls body(thread) on each of `threads` threads.
template <class Body>
void on_each_thread(int threads, Body body) {
  parallel::parallel_for(threads, 1, [&](std::int64_t thread, std::int64_t end) {
    for (; thread < end; ++thread) body(thread);
  });
}

/// Memory as tensors get it: large blocks are on huge pages, where the system gives them.
class TensorMemory {
 public:
  explicit TensorMemory(std::size_t bytes)
      : bytes_(bytes), data_(static_cast<float*>(system_allocator().allocate(bytes))) {}
  ~TensorMemory() { system_allocator().deallocate(data_, bytes_); }
  TensorMemory(const TensorMemory&) = delete;
  TensorMemory& operator=(const TensorMemory&) = delete;

  float* data() const noexcept { return data_; }

 private:
  std::size_t bytes_;
  float* data_;
};

/// One block per thread, each first touched by a thread of the pool.
class Blocks {
 public:
  Blocks(std::size_t bytes, int threads) {
    const auto floats = static_cast<std::int64_t>(bytes / sizeof(float)) / threads;
    // Divisible by two and three arrays, each a whole number of units.
    constexpr std::int64_t kStep = 6 * kernels::Ceilings::kUnit;
    n_ = std::max<std::int64_t>(floats / kStep, 1) * kStep;
    // An odd number of lines, so that the blocks of the threads do not share cache sets.
    stride_ = n_ + 17 * 16;
    const auto all = static_cast<std::size_t>(stride_) * static_cast<std::size_t>(threads);
    memory_.emplace(all * sizeof(float));
    on_each_thread(threads, [&](std::int64_t thread) { std::fill_n(block(thread), n_, 1.0f); });
  }
  float* block(std::int64_t thread) const { return memory_->data() + thread * stride_; }
  std::int64_t floats() const { return n_; }

 private:
  std::optional<TensorMemory> memory_;
  std::int64_t n_ = 0;
  std::int64_t stride_ = 0;
};

}  // namespace

const char* stream_name(Stream stream) {
  switch (stream) {
    case Stream::Read:
      return "read";
    case Stream::Copy:
      return "copy";
    case Stream::Add:
      return "add";
    case Stream::Update:
      break;
  }
  return "update";
}

double fma_gflop_per_s(int bits, int threads, double seconds) {
  const ThreadScope scope(threads);
  const kernels::Ceilings loops = kernels::ceilings(kernels::active_isa());
  const auto loop = bits == 64 ? loops.fma_f64 : loops.fma_f32;
  std::vector<double> done(static_cast<std::size_t>(threads));
  return best_rate(seconds,
                   [&](std::int64_t passes) {
                     on_each_thread(threads, [&](std::int64_t thread) {
                       double sink = 0;
                       done[static_cast<std::size_t>(thread)] = loop(passes * 1000, &sink);
                       keep(sink);
                     });
                     double sum = 0;
                     for (const double d : done) sum += d;
                     return sum;
                   }) /
         1e9;
}

double stream_gb_per_s(Stream stream, std::size_t bytes, int threads, double seconds) {
  const ThreadScope scope(threads);
  const kernels::Ceilings loops = kernels::ceilings(kernels::active_isa());
  const Blocks blocks(bytes, threads);
  const std::int64_t n = blocks.floats();
  const double moved = stream == Stream::Update ? 2 : 1;  // updated elements are read and written
  const auto run = [&](bool streamed, double budget) {
    return best_rate(budget,
                     [&](std::int64_t passes) {
                       on_each_thread(threads, [&](std::int64_t thread) {
                         float* x = blocks.block(thread);
                         for (std::int64_t pass = 0; pass < passes; ++pass) {
                           switch (stream) {
                             case Stream::Read:
                               keep(loops.read(x, n));
                               break;
                             case Stream::Copy:
                               loops.copy(x, x + n / 2, n / 2, streamed);
                               break;
                             case Stream::Add:
                               loops.add(x, x + n / 3, x + n / 3 * 2, n / 3, streamed);
                               break;
                             case Stream::Update:
                               loops.update(x, n);
                               break;
                           }
                         }
                       });
                       return moved * static_cast<double>(n) * sizeof(float) *
                              static_cast<double>(threads) * static_cast<double>(passes);
                     }) /
           1e9;
  };
  if (stream == Stream::Read || stream == Stream::Update) return run(false, seconds);
  return std::max(run(false, seconds / 2), run(true, seconds / 2));
}

std::size_t beyond_caches(const Machine& machine) {
  return std::clamp<std::size_t>(6 * data_cache_bytes(machine, 3), 96UL << 20, 768UL << 20);
}

MeasuredCeilings measure_ceilings(const Machine& machine, int threads,
                                  const std::function<void(const std::string&)>& progress) {
  constexpr double kSecondsEach = 0.05;
  const auto announce = [&](const std::string& what, int on) {
    if (progress) progress("measuring " + what + ", " + std::to_string(on) + " threads");
  };
  std::vector<int> counts = {1};
  if (threads > 1) counts.push_back(threads);

  MeasuredCeilings all;
  for (const int bits : {32, 64}) {
    for (const int on : counts) {
      announce("multiply-adds of " + std::to_string(bits) + " bits", on);
      all.fma.push_back({bits, on, fma_gflop_per_s(bits, on, kSecondsEach)});
    }
  }
  for (const Stream stream : {Stream::Read, Stream::Copy, Stream::Add, Stream::Update}) {
    for (const int on : counts) {
      const auto own = static_cast<std::size_t>(on);
      const std::pair<const char*, std::size_t> levels[] = {
          {"L1", data_cache_bytes(machine, 1) / 2 * own},
          {"L2", data_cache_bytes(machine, 2) / 2 * own},
          {"L3", data_cache_bytes(machine, 3) / 2},
          {"memory", beyond_caches(machine)}};
      for (const auto& [level, bytes] : levels) {
        announce(std::string(stream_name(stream)) + " of " + level, on);
        all.streams.push_back(
            {stream, level, bytes, on, stream_gb_per_s(stream, bytes, on, kSecondsEach)});
      }
    }
  }
  return all;
}

}  // namespace baregrad::bench

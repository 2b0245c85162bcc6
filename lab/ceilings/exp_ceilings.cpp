// The ceilings of the machine: arithmetic, memory bandwidth, latency, the start of a parallel
// region.
#include <algorithm>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>

#include "bench/ceilings.h"
#include "bench/parallel_bench.h"
#include "lab/ceilings/chase.h"
#include "lab/ceilings/clock_rate.h"
#include "lab/experiments.h"
#include "lab/memory_levels.h"
#include "lab/thread_counts.h"
#include "lab/timing.h"

namespace baregrad::lab {
namespace {

using bench::Stream;

constexpr Stream kStreams[] = {Stream::Read, Stream::Copy, Stream::Add, Stream::Update};

/// The measuring time, in seconds per number.
struct Effort {
  int rounds;
  double fma_s, stream_s, curve_s, latency_s, clock_s, create_s;
  int fork_join_rounds;
  int steps;         ///< sizes of the working set per doubling
  std::size_t most;  ///< the largest working set, in bytes
};

Effort effort_of(const Notebook& notebook) {
  if (notebook.quick()) return {2, 0.005, 0.005, 0.008, 0.008, 0.05, 0.05, 1, 1, 64UL << 20};
  return {5, 0.03, 0.03, 0.03, 0.03, 0.5, 0.4, 8, 2, 256UL << 20};
}

/// The time per thread count. More than two counts share the time of two.
double share(double seconds, std::size_t counts) {
  return seconds * std::min(1.0, 2.0 / static_cast<double>(counts));
}

/// `name` of the best round, which is the ceiling, and the spread of the rounds around their
/// median.
Json rates_json(const std::string& name, const std::vector<double>& rounds) {
  const Timing spread = summarize(rounds);
  return {{name, *std::max_element(rounds.begin(), rounds.end())},
          {"median_" + name, spread.median_ns},
          {"p10_" + name, spread.p10_ns},
          {"p90_" + name, spread.p90_ns},
          {"rounds", spread.repeats}};
}

void measure_clock(Notebook& notebook, const Effort& effort) {
  const Timing ghz = summarize(additions_per_ns(effort.clock_s));
  notebook.add("clock", {{"median_ghz", ghz.median_ns},
                         {"p10_ghz", ghz.p10_ns},
                         {"p90_ghz", ghz.p90_ns},
                         {"repeats", ghz.repeats}});
  notebook.note(
      "The clock is the rate of integer additions that wait for each other: one a cycle. Under "
      "vector work a processor may clock lower.");
}

void measure_fma(Notebook& notebook, const Effort& effort) {
  struct Case {
    int bits;
    int threads;
    std::vector<double> rounds;
  };
  const std::vector<int> counts = thread_counts(notebook.threads());
  std::vector<Case> cases;
  for (const int bits : {32, 64}) {
    for (const int threads : counts) cases.push_back({bits, threads, {}});
  }
  for (int round = 0; round < effort.rounds; ++round) {
    for (Case& c : cases) {
      c.rounds.push_back(
          bench::fma_gflop_per_s(c.bits, c.threads, share(effort.fma_s, counts.size())));
    }
  }
  for (const Case& c : cases) {
    Json record = {{"dtype", c.bits == 32 ? "float32" : "float64"}, {"threads", c.threads}};
    record.update(rates_json("gflop_per_s", c.rounds));
    notebook.add("fma", record);
  }
  notebook.note(
      "float16 and bfloat16 have no arithmetic of their own in the engine: they are widened to "
      "float32, whose ceiling is theirs too.");
}

void measure_level(Notebook& notebook, const Effort& effort, std::size_t level, int threads,
                   std::size_t counts) {
  const MemoryLevel where = memory_levels(notebook.machine(), threads)[level];
  // Memory is allocated and touched again for every number, which takes longer than the
  // measurement.
  const int rounds = where.name == "memory" ? std::min(effort.rounds, 2) : effort.rounds;
  std::vector<std::vector<double>> rates(std::size(kStreams));
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < rates.size(); ++i) {
      rates[i].push_back(
          bench::stream_gb_per_s(kStreams[i], where.work, threads, share(effort.stream_s, counts)));
    }
  }
  for (std::size_t i = 0; i < rates.size(); ++i) {
    Json record = {{"stream", bench::stream_name(kStreams[i])},
                   {"level", where.name},
                   {"bytes", where.work},
                   {"threads", threads}};
    record.update(rates_json("gb_per_s", rates[i]));
    notebook.add("stream", record);
  }
}

/// The size rounded so that stream_gb_per_s() divides it evenly among the threads.
std::size_t divisible(std::size_t bytes, int threads) {
  const std::size_t step = 3072UL * static_cast<std::size_t>(threads);
  return std::max<std::size_t>((bytes + step / 2) / step, 1) * step;
}

void measure_bandwidth_curve(Notebook& notebook, const Effort& effort, int threads) {
  std::size_t last = 0;
  for (const std::size_t about : working_sets(notebook.machine(), effort.steps, effort.most)) {
    const std::size_t bytes = divisible(about, threads);
    if (bytes == last) continue;
    last = bytes;
    notebook.add(
        "bandwidth",
        {{"stream", "read"},
         {"bytes", bytes},
         {"threads", threads},
         {"gb_per_s", bench::stream_gb_per_s(Stream::Read, bytes, threads, effort.curve_s)}});
  }
}

void measure_latency_curve(Notebook& notebook, const Effort& effort, PageSize pages) {
  for (const std::size_t bytes : working_sets(notebook.machine(), effort.steps, effort.most)) {
    Chase chase(bytes, pages, notebook.seed());
    Json record = {{"pages", pages == PageSize::Huge ? "huge" : "small"}, {"bytes", bytes}};
    record.update(to_json(chase.measure(effort.latency_s)));
    notebook.add("latency", record);
  }
}

/// Whether the kernel gives huge pages on request.
bool gives_huge_pages(std::uint64_t seed) {
  constexpr std::size_t kProbe = 16UL << 20;
  const std::size_t before = huge_bytes();
  const Chase probe(kProbe, PageSize::Huge, seed);
  return huge_bytes() >= before + kProbe / 2;
}

void measure_huge_latency(Notebook& notebook, const Effort& effort) {
  if (!gives_huge_pages(notebook.seed())) {
    notebook.absent("latency in huge pages", "the kernel gives none to memory that asks for them");
    return;
  }
  measure_latency_curve(notebook, effort, PageSize::Huge);
}

void add_region(Notebook& notebook, const char* implementation, const char* body, int threads,
                const Timing& timing) {
  Json record = {{"implementation", implementation}, {"body", body}, {"threads", threads}};
  record.update(to_json(timing));
  notebook.add("fork_join", record);
}

/// A parallel region without a pool: the caller is one of the threads, the others are created and
/// joined.
void create_and_join(int threads) {
  std::vector<pthread_t> others(static_cast<std::size_t>(threads - 1));
  for (pthread_t& other : others) {
    const int error = pthread_create(
        &other, nullptr, [](void* nothing) { return nothing; }, nullptr);
    if (error != 0) throw std::system_error(error, std::generic_category(), "pthread_create");
  }
  for (const pthread_t other : others) pthread_join(other, nullptr);
}

void measure_regions(Notebook& notebook, const Effort& effort, int threads) {
  const struct {
    const char* body;
    std::vector<bench::ForkJoin> (*measure)(const std::vector<int>&, int);
  } bodies[] = {{"empty", bench::measure_fork_join},
                {"all present", bench::measure_fork_join_all_present}};
  for (const auto& kind : bodies) {
    const bench::ForkJoin both = kind.measure({threads}, effort.fork_join_rounds).front();
    add_region(notebook, "baregrad", kind.body, threads,
               {both.ours_ns_median, both.ours_p10, both.ours_p90, both.samples});
    add_region(notebook, "OpenMP", kind.body, threads,
               {both.openmp_median, both.openmp_p10, both.openmp_p90, both.samples});
  }
  // OpenMP's workers spin for a while after their last region.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto made = take_turns({contender_once("pthread", [&] { create_and_join(threads); })},
                               {.seconds = effort.create_s});
  add_region(notebook, "pthread_create and join", "all present", threads, made.front());
}

}  // namespace

void run_ceilings(Notebook& notebook) {
  const Effort effort = effort_of(notebook);
  const std::vector<int> counts = thread_counts(notebook.threads());
  notebook.part("clock", [&] { measure_clock(notebook, effort); });
  notebook.part("multiply-adds", [&] { measure_fma(notebook, effort); });
  for (const int threads : counts) {
    const std::string on = ", " + std::to_string(threads) + " threads";
    const std::vector<MemoryLevel> levels = memory_levels(notebook.machine(), threads);
    for (std::size_t i = 0; i < levels.size(); ++i) {
      notebook.part(levels[i].name + on,
                    [&] { measure_level(notebook, effort, i, threads, counts.size()); });
    }
  }
  std::vector<int> ends = {1};
  if (notebook.threads() > 1) ends.push_back(notebook.threads());
  for (const int threads : ends) {
    notebook.part("bandwidth by working set, " + std::to_string(threads) + " threads",
                  [&] { measure_bandwidth_curve(notebook, effort, threads); });
  }
  notebook.part("latency by working set",
                [&] { measure_latency_curve(notebook, effort, PageSize::Small); });
  notebook.part("latency in huge pages", [&] { measure_huge_latency(notebook, effort); });
  if (notebook.threads() == 1) {
    notebook.part("regions", [&] {
      notebook.absent("the start of a parallel region", "there is one thread here");
    });
    return;
  }
  for (const int threads : counts) {
    if (threads == 1) continue;
    notebook.part("regions, " + std::to_string(threads) + " threads",
                  [&] { measure_regions(notebook, effort, threads); });
  }
}

}  // namespace baregrad::lab

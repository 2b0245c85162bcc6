// Predictable and unpredictable branches, a loop unrolled with one and with several sums, and code
// larger than the caches.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lab/branches/branch_kernels.h"
#include "lab/branches/branch_trials.h"
#include "lab/branches/code_block.h"
#include "lab/counting/counters.h"
#include "lab/experiments.h"
#include "lab/timing.h"

namespace baregrad::lab {
namespace {

// More elements than a predictor can memorise, but within an L2 cache.
constexpr std::int64_t kPickSize = 1 << 18;
constexpr const char* kPickOrders[] = {"sorted", "random", "masked"};
constexpr std::int64_t kDotSize = 2048;  // both operands: half of a typical L1 cache

std::vector<int> shares(bool quick) {
  if (quick) return {0, 50, 100};
  return {0, 5, 10, 25, 50, 75, 90, 95, 100};
}

std::vector<Timing> time_in_turns(const std::vector<TrialRun>& runs, double seconds) {
  std::vector<Contender> contenders;
  for (const TrialRun& run : runs) {
    contenders.push_back(contender_once(run.name, prepare_trial(run.name, run.size)));
  }
  return take_turns(contenders, {.seconds = seconds});
}

Json timed(const TrialRun& run, const Timing& timing, const Json& fields) {
  Json record = {{"name", run.name}, {"size", run.size}};
  record.update(fields);
  record["threads"] = 1;
  record.update(to_json(timing));
  return record;
}

void check_results(Notebook& notebook) {
  for (const bool sorted : {true, false}) {
    const std::vector<std::int32_t> numbers = pick_numbers(kPickSize, 50, sorted);
    // The sum of the upper half of 0, 1, ...
    const std::int64_t half = kPickSize / 2;
    const std::int64_t truth = half * (half - 1) / 2;
    for (const bool masked : {false, true}) {
      const auto sum = masked ? sum_if_masked : sum_if_branching;
      const std::int64_t error = std::abs(sum(numbers.data(), kPickSize, 0) - truth);
      notebook.add("check", {{"name", masked ? "pick:masked" : "pick:branching"},
                             {"sorted", sorted},
                             {"max_error", error}});
    }
  }
  const std::shared_ptr<const float[]> x = shared_numbers(kDotSize);
  double truth = 0;
  for (std::int64_t i = 0; i < kDotSize; ++i) truth += static_cast<double>(x[i]) * x[i];
  for (const Dot& dot : dots()) {
    const double error = std::abs(dot.run(x.get(), x.get(), kDotSize) - truth);
    notebook.add("check", {{"name", fmt::format("dot:{}", dot.name)}, {"max_error", error}});
  }
}

void run_pick(Notebook& notebook, const Counter& counter, int share) {
  std::vector<TrialRun> runs;
  for (const char* order : kPickOrders) {
    runs.push_back({fmt::format("pick:{}_{}", order, share), kPickSize});
  }
  const std::vector<Timing> timings = time_in_turns(runs, notebook.quick() ? 0.2 : 1.0);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    notebook.add("pick", timed(runs[i], timings[i],
                               {{"order", kPickOrders[i]},
                                {"taken_percent", share},
                                {"dtype", "int32"},
                                {"ns_per_element", timings[i].median_ns / kPickSize}}));
  }
  counter.record(notebook, runs);
}

void run_dots(Notebook& notebook, const Counter& counter) {
  std::vector<TrialRun> runs;
  for (const Dot& dot : dots()) runs.push_back({fmt::format("dot:{}", dot.name), kDotSize});
  const std::vector<Timing> timings = time_in_turns(runs, notebook.quick() ? 0.5 : 5.0);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Dot& dot = dots()[i];
    notebook.add("dot", timed(runs[i], timings[i],
                              {{"unrolled", dot.unrolled},
                               {"sums", dot.sums},
                               {"dtype", "float32"},
                               {"ns_per_element", timings[i].median_ns / kDotSize}}));
  }
  counter.record(notebook, runs);
}

/// From 1 KiB to beyond the L2 cache.
std::vector<std::int64_t> code_sizes(const Notebook& notebook) {
  constexpr std::size_t kLeast = 512UL << 10;
  constexpr std::size_t kMost = 16UL << 20;
  const std::size_t beyond =
      std::clamp(4 * bench::data_cache_bytes(notebook.machine(), 2), kLeast, kMost);
  std::vector<std::int64_t> sizes;
  for (std::size_t bytes = 1 << 10; bytes <= beyond; bytes *= notebook.quick() ? 4 : 2) {
    sizes.push_back(static_cast<std::int64_t>(bytes));
  }
  return sizes;
}

// Not in turns: each length would evict the code of the others from the caches.
void run_code(Notebook& notebook, std::int64_t bytes) {
  const TrialRun run{"code", bytes};
  const Timing timing = time_in_turns({run}, notebook.quick() ? 0.05 : 0.5).front();
  const double instructions = static_cast<double>(bytes) / 4;
  notebook.add("code", timed(run, timing,
                             {{"instructions", instructions},
                              {"ns_per_instruction", timing.median_ns / instructions}}));
}

void count_code(Notebook& notebook, const Counter& counter) {
  constexpr std::int64_t kMost = 256 << 10;  // a simulator must translate all of it first
  std::vector<TrialRun> runs;
  for (const std::int64_t bytes : code_sizes(notebook)) {
    if (bytes <= kMost || counter.source() == "hardware") runs.push_back({"code", bytes});
  }
  counter.record(notebook, runs);
}

}  // namespace

void run_branches(Notebook& notebook) {
  const Counter counter(notebook.machine());
  notebook.part("counter", [&] {
    counter.introduce(notebook);
    check_results(notebook);
  });
  for (const int share : shares(notebook.quick())) {
    notebook.part(fmt::format("{} % taken", share), [&] { run_pick(notebook, counter, share); });
  }
  notebook.part("dot products", [&] { run_dots(notebook, counter); });
  std::string why;
  if (!CodeBlock::make(1 << 10, why)) {
    notebook.part("code", [&] { notebook.absent("straight-line code of growing length", why); });
    return;
  }
  for (const std::int64_t bytes : code_sizes(notebook)) {
    notebook.part(fmt::format("code of {} KiB", bytes >> 10), [&] { run_code(notebook, bytes); });
  }
  notebook.part("counts of code", [&] { count_code(notebook, counter); });
}

}  // namespace baregrad::lab

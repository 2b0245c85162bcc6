// The order of memory accesses: by rows, columns and tiles, with strides, and with rows whose
// length is a power of two.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include <unistd.h>

#include <fmt/format.h>

#include "lab/cache/cache_kernels.h"
#include "lab/cache/cache_trials.h"
#include "lab/counting/counters.h"
#include "lab/experiments.h"
#include "lab/timing.h"

namespace baregrad::lab {
namespace {

constexpr const char* kMatrixTrials[] = {"sum:rows",        "sum:columns",    "sum:tiles",
                                         "fill:rows",       "fill:columns",   "fill:tiles",
                                         "transpose:naive", "transpose:tiled"};
constexpr std::int64_t kStrides[] = {1, 2, 4, 8, 16, 32, 64};
constexpr std::int64_t kLineFloats = 16;

/// The level of the memory hierarchy that holds the data.
struct Level {
  const char* name;
  std::size_t bytes;  ///< of the data
};

std::vector<Level> levels_of(const bench::Machine& machine) {
  constexpr std::size_t kLeast = 64UL << 20;
  constexpr std::size_t kMost = 512UL << 20;
  const std::size_t last = bench::data_cache_bytes(machine, 3);
  return {{"L1", bench::data_cache_bytes(machine, 1) / 2},
          {"L2", bench::data_cache_bytes(machine, 2) / 2},
          {"L3", last / 2},
          {"memory", std::clamp(2 * last, kLeast, kMost)}};
}

/// The side of the largest square matrix of at most so many bytes. Rows are an odd number of lines
/// long, so that the lines of a column map to different sets of a cache.
std::int64_t side_of(std::size_t bytes) {
  const auto side =
      static_cast<std::int64_t>(std::sqrt(static_cast<double>(bytes) / sizeof(float)));
  const std::int64_t lines = std::max<std::int64_t>(side / kLineFloats, 1);
  return (lines - (lines % 2 == 0 ? 1 : 0)) * kLineFloats;
}

/// The size used to count misses of a level. Simulating a hundred megabytes would take minutes. A
/// smaller matrix has the same misses per element, if its column has more lines than the L1 cache
/// and, for memory, if all caches are empty at the start.
struct Counting {
  std::int64_t most_side;
  int warm_ups;
};
Counting counting_of(const Level& level, const Counter& counter, bool quick) {
  const bool memory = std::string_view(level.name) == "memory";
  if (counter.source() == "hardware") return {1L << 30, memory ? 0 : 1};
  return {side_of((quick ? 2UL : 4UL) << 20), memory ? 0 : 1};
}

void check_cache_results(Notebook& notebook) {
  constexpr std::int64_t kSide = 336;
  const std::shared_ptr<const float[]> x = shared_numbers(kSide * kSide);
  double truth = 0;
  for (std::int64_t i = 0; i < kSide * kSide; ++i) truth += x[i];
  const auto add = [&](const char* name, double error) {
    notebook.add("check", {{"name", name}, {"n", kSide}, {"max_error", error}});
  };
  const auto sum_error = [&](Order order) {
    return std::abs(sum_matrix(order, kSide, x.get()) - truth);
  };
  add("sum:rows", sum_error(Order::Rows));
  add("sum:columns", sum_error(Order::Columns));
  add("sum:tiles", sum_error(Order::Tiles));
  const auto transpose_error = [&](auto transpose) {
    std::vector<float> y(static_cast<std::size_t>(kSide * kSide));
    transpose(kSide, x.get(), y.data());
    double error = 0;
    for (std::int64_t i = 0; i < kSide * kSide; ++i) {
      const float from = x[i % kSide * kSide + i / kSide];
      error = std::max<double>(error, std::abs(y[static_cast<std::size_t>(i)] - from));
    }
    return error;
  };
  add("transpose:naive", transpose_error(transpose_naive));
  add("transpose:tiled", transpose_error(transpose_tiled));
}

/// Times trials of one size in turns. Each becomes a record with `fields` and its own fields.
void time_trials(Notebook& notebook, const char* kind, const std::vector<TrialRun>& runs,
                 const std::vector<Json>& fields, const std::vector<std::int64_t>& elements,
                 const Turns& turns) {
  std::vector<Contender> contenders;
  for (const TrialRun& run : runs) {
    contenders.push_back(contender_once(run.name, prepare_trial(run.name, run.size)));
  }
  const std::vector<Timing> timings = take_turns(contenders, turns);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Json record = {{"name", runs[i].name}};
    record.update(fields[i]);
    record["threads"] = 1;
    record["dtype"] = "float32";
    record["ns_per_element"] = timings[i].median_ns / static_cast<double>(elements[i]);
    record.update(to_json(timings[i]));
    notebook.add(kind, record);
  }
}

void time_matrices(Notebook& notebook, const Level& level, const Counting& counting,
                   const Turns& turns) {
  const std::int64_t n = side_of(level.bytes);
  std::vector<TrialRun> runs;
  for (const char* name : kMatrixTrials) runs.push_back({name, n});
  const Json fields = {{"level", level.name},
                       {"n", n},
                       {"bytes", n * n * static_cast<std::int64_t>(sizeof(float))},
                       {"counted_n", std::min(n, counting.most_side)},
                       {"counted_warm_ups", counting.warm_ups}};
  time_trials(notebook, "matrix", runs, std::vector<Json>(runs.size(), fields),
              std::vector<std::int64_t>(runs.size(), n * n), turns);
}

/// The number of floats of a strided walk: a multiple of the longest stride.
std::int64_t floats_of(std::size_t bytes) {
  constexpr std::int64_t kMultiple = 64 * 8;
  return static_cast<std::int64_t>(bytes / sizeof(float)) / kMultiple * kMultiple;
}
std::int64_t counted_floats(const Level& level, const Counting& counting) {
  const std::int64_t most = counting.most_side * counting.most_side;
  return std::min(floats_of(level.bytes),
                  floats_of(static_cast<std::size_t>(most) * sizeof(float)));
}

void time_strides(Notebook& notebook, const Level& level, const Counting& counting,
                  const Turns& turns) {
  const std::int64_t floats = floats_of(level.bytes);
  std::vector<TrialRun> runs;
  std::vector<Json> fields;
  std::vector<std::int64_t> elements;
  for (const std::int64_t stride : kStrides) {
    runs.push_back({fmt::format("stride:{}", stride), floats});
    elements.push_back(floats / stride);
    fields.push_back({{"level", level.name},
                      {"stride", stride},
                      {"distance_bytes", stride * static_cast<std::int64_t>(sizeof(float))},
                      {"bytes", level.bytes},
                      {"elements", floats / stride},
                      {"counted_size", counted_floats(level, counting)},
                      {"counted_warm_ups", counting.warm_ups}});
  }
  time_trials(notebook, "stride", runs, fields, elements, turns);
}

void count_level(Notebook& notebook, const Level& level, const Counting& counting,
                 const Counter& counter) {
  const std::int64_t n = std::min(side_of(level.bytes), counting.most_side);
  std::vector<TrialRun> runs;
  for (const char* name : kMatrixTrials) runs.push_back({name, n, counting.warm_ups});
  for (const std::int64_t stride : kStrides) {
    runs.push_back(
        {fmt::format("stride:{}", stride), counted_floats(level, counting), counting.warm_ups});
  }
  counter.record(notebook, runs);
}

/// Bytes of this process on huge pages.
std::int64_t mapped_huge_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string word; file >> word;) {
    std::int64_t kib = 0;
    if (word == "AnonHugePages:" && file >> kib) return kib << 10;
  }
  return 0;
}

/// The matrix in memory by columns, on small and on huge pages: the same cache misses, but fewer
/// TLB misses.
void run_huge_pages(Notebook& notebook, const Level& level, const Turns& turns) {
  const std::int64_t n = side_of(level.bytes);
  const std::int64_t bytes = n * n * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t before = mapped_huge_bytes();
  const Body huge = prepare_trial("huge:columns", n);
  if (mapped_huge_bytes() - before < bytes / 2) {
    notebook.absent("a walk over huge pages", "the kernel gives no pages of 2 MiB for the asking");
    return;
  }
  const std::vector<Timing> timings =
      take_turns({contender_once("sum:columns", prepare_trial("sum:columns", n)),
                  contender_once("huge:columns", huge)},
                 turns);
  for (const bool on_huge : {false, true}) {
    const Timing& timing = timings[on_huge ? 1 : 0];
    Json record = {{"name", on_huge ? "huge:columns" : "sum:columns"},
                   {"level", level.name},
                   {"n", n},
                   {"page_bytes", on_huge ? 2 << 20 : ::sysconf(_SC_PAGESIZE)},
                   {"threads", 1},
                   {"ns_per_element", timing.median_ns / static_cast<double>(n * n)}};
    record.update(to_json(timing));
    notebook.add("page", record);
  }
}

/// Rows of 4 KiB, and rows one line longer.
void run_pitches(Notebook& notebook, const Counter& counter) {
  constexpr std::int64_t kRows = 128;  // 8 KiB of lines: a quarter of a typical L1 cache
  std::vector<TrialRun> runs;
  std::vector<Json> fields;
  for (const std::int64_t pitch : {1024, 1024 + 16}) {
    runs.push_back({fmt::format("pitch:{}", pitch), kRows});
    fields.push_back({{"pitch_bytes", pitch * 4},
                      {"rows", kRows},
                      {"columns", kPitchColumns},
                      {"touched_bytes", kRows * 64},
                      {"elements", kRows * kPitchColumns}});
  }
  time_trials(notebook, "pitch", runs, fields,
              std::vector<std::int64_t>(runs.size(), kRows * kPitchColumns),
              {.seconds = notebook.quick() ? 0.1 : 1.0});
  counter.record(notebook, runs);
}

}  // namespace

void run_cache(Notebook& notebook) {
  const Counter counter(notebook.machine());
  notebook.part("counter", [&] {
    counter.introduce(notebook);
    check_cache_results(notebook);
  });
  const Turns turns{.seconds = notebook.quick() ? 0.15 : 3.0, .least = notebook.quick() ? 2 : 3};
  for (const Level& level : levels_of(notebook.machine())) {
    const Counting counting = counting_of(level, counter, notebook.quick());
    notebook.part(fmt::format("matrices in {}", level.name),
                  [&] { time_matrices(notebook, level, counting, turns); });
    notebook.part(fmt::format("strides in {}", level.name),
                  [&] { time_strides(notebook, level, counting, turns); });
    notebook.part(fmt::format("counts in {}", level.name),
                  [&] { count_level(notebook, level, counting, counter); });
  }
  notebook.part("huge pages",
                [&] { run_huge_pages(notebook, levels_of(notebook.machine()).back(), turns); });
  notebook.part("pitches", [&] { run_pitches(notebook, counter); });
}

}  // namespace baregrad::lab

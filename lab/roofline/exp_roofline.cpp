// Kernels and rungs under the roofs of arithmetic and memory.
#include <algorithm>
#include <string>
#include <vector>

#include "baregrad/ops.h"
#include "bench/ceilings.h"
#include "bench/harness.h"
#include "bench/matmul_truth.h"
#include "lab/experiments.h"
#include "lab/ladder/rungs.h"
#include "lab/memory_levels.h"
#include "lab/roofline/counted_work.h"
#include "lab/roofline/roofline_kernels.h"
#include "lab/timing.h"

namespace baregrad::lab {
namespace {

using bench::Stream;

// The rungs use one thread, so all points and roofs do too.
constexpr int kThreads = 1;

void measure_arithmetic_roof(Notebook& notebook) {
  notebook.add("roof", {{"name", "multiply-adds"},
                        {"dtype", "float32"},
                        {"threads", kThreads},
                        {"gflop_per_s",
                         bench::fma_gflop_per_s(32, kThreads, notebook.quick() ? 0.05 : 0.5)}});
}

/// The fastest of reading, copying and adding: every kernel can reach one of these. Kernels that
/// update in place have a separate roof, which other kernels cannot reach.
void measure_memory_roof(Notebook& notebook, const MemoryLevel& level) {
  Json record = {{"name", level.name}, {"bytes", level.work}, {"threads", kThreads}};
  double best = 0;
  for (const Stream stream : {Stream::Read, Stream::Copy, Stream::Add}) {
    const double rate =
        bench::stream_gb_per_s(stream, level.work, kThreads, notebook.quick() ? 0.02 : 0.3);
    record[std::string(bench::stream_name(stream)) + "_gb_per_s"] = rate;
    best = std::max(best, rate);
  }
  record["update_gb_per_s"] =
      bench::stream_gb_per_s(Stream::Update, level.work, kThreads, notebook.quick() ? 0.02 : 0.3);
  record["gb_per_s"] = best;
  notebook.add("roof", record);
}

/// The coordinates of a point: operations per byte, and operations per second.
Json point_json(const Notebook& notebook, const profile::Work& work, const Timing& timing) {
  const auto flops = static_cast<double>(work.flops);
  const auto bytes = static_cast<double>(work.bytes);
  Json record = {{"threads", kThreads}, {"dtype", "float32"}};
  record.update(to_json(timing));
  record.update({{"flops", work.flops},
                 {"bytes", work.bytes},
                 {"level", level_of(memory_levels(notebook.machine(), kThreads), work.bytes).name},
                 {"flop_per_byte", flops / bytes},
                 {"gflop_per_s", flops / timing.median_ns},
                 {"gb_per_s", bytes / timing.median_ns}});
  return record;
}

void measure_kernel(Notebook& notebook, const RooflineRow& row) {
  const bench::ThreadScope scope(kThreads);
  const RooflineKernel kernel = row.make(notebook.quick(), notebook.seed());
  const profile::Work work = kernel.by_hand ? *kernel.by_hand : count_work(kernel.run);
  const auto timings =
      take_turns({contender_once(kernel.name, kernel.run)},
                 {.seconds = notebook.quick() ? 0.05 : 0.8, .least = notebook.quick() ? 3 : 5});
  Json record = {{"name", kernel.name},
                 {"label", row.key},
                 {"shape", kernel.shape},
                 {"counted_by", kernel.by_hand ? "hand" : "profiler"},
                 {"in_place", kernel.in_place}};
  record.update(point_json(notebook, work, timings.front()));
  notebook.add("kernel", record);
}

void measure_rungs(Notebook& notebook) {
  const bench::ThreadScope scope(kThreads);
  // Not a power of two: rows would map to the same cache sets, which the experiment `cache`
  // measures.
  bench::MatmulCase product{};
  const std::int64_t n = notebook.quick() ? 200 : 500;
  product.m = product.n = product.k = n;
  Generator generator(notebook.seed());
  const Tensor a = uniform({n, n}, -1, 1, DType::Float32, &generator);
  const Tensor b = uniform({n, n}, -1, 1, DType::Float32, &generator);
  const Tensor c = zeros({n, n});
  const bench::MatmulTruth truth(product, a, b);
  std::vector<Contender> contenders;
  std::vector<double> errors;
  for (const Rung& rung : rungs()) {
    const auto multiply = [&, n] {
      rung.multiply(n, a.data<float>(), b.data<float>(), c.data<float>());
    };
    multiply();
    errors.push_back(truth.max_error(c.data<float>()));
    contenders.push_back(contender_once(std::string(rung.name), multiply));
  }
  const auto timings = take_turns(contenders, {.seconds = notebook.quick() ? 0.5 : 8.0});
  const profile::Work work{static_cast<std::uint64_t>(product.flops()),
                           static_cast<std::uint64_t>(product.bytes())};
  for (std::size_t i = 0; i < timings.size(); ++i) {
    const Rung& rung = rungs()[i];
    Json record = {{"name", rung.name}, {"title", rung.title}, {"n", n}};
    record.update(point_json(notebook, work, timings[i]));
    record["max_error"] = errors[i];
    notebook.add("rung", record);
  }
}

}  // namespace

void run_roofline(Notebook& notebook) {
  notebook.part("roof of multiply-adds", [&] { measure_arithmetic_roof(notebook); });
  for (const MemoryLevel& level : memory_levels(notebook.machine(), kThreads)) {
    notebook.part("roof of " + level.name, [&] { measure_memory_roof(notebook, level); });
  }
  for (const RooflineRow& row : roofline_rows()) {
    notebook.part(std::string("kernel ") + row.key, [&] { measure_kernel(notebook, row); });
  }
  notebook.part("rungs", [&] { measure_rungs(notebook); });
}

}  // namespace baregrad::lab

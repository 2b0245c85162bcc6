// The ladder: rungs over sizes, events per multiply-add, threads, libraries.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "lab/counting/counters.h"
#include "lab/experiments.h"
#include "lab/ladder/rungs.h"
#include "lab/ladder/threads.h"
#include "lab/products.h"

namespace baregrad::lab {
namespace {

/// What a run measures.
struct Plan {
  std::vector<std::int64_t> rung_sizes;
  std::int64_t counted_size;  // one of them
  std::vector<std::int64_t> thread_sizes;
  std::vector<std::int64_t> library_sizes;
  double seconds;  // per part, unless a single product takes longer
};

Plan plan(bool quick) {
  if (quick) return {{16, 64, 256, 400}, 64, {400}, {64, 400}, 0.25};
  // 1024 beside 1000: rows that are a power of two apart map to the same cache sets.
  return {{10, 16, 32, 64, 100, 128, 192, 256, 512, 1000, 1024, 2000},
          192,
          {64, 128, 256, 512, 1000, 2000},
          {10, 32, 64, 100, 128, 256, 512, 1000, 2000},
          0.8};
}

bench::MatmulCase square(std::int64_t n, int threads) {
  return {.dtype = DType::Float32, .m = n, .n = n, .k = n, .threads = threads};
}

Turns turns(const Notebook& notebook, const Plan& plan, int threads) {
  return {.seconds = plan.seconds,
          .least = notebook.quick() ? 3 : 5,
          .settle = settle_time(notebook, threads)};
}

void introduce(Notebook& notebook) {
  for (const Rung& rung : rungs()) {
    notebook.add("rung", {{"name", rung.name},
                          {"title", rung.title},
                          {"change", rung.change},
                          {"file", rung.file},
                          {"scalar", rung.scalar}});
  }
  for (const ThreadedRung& rung : threaded_rungs()) {
    notebook.add("threaded", {{"name", rung.name}, {"title", rung.title}, {"file", rung.file}});
  }
}

void measure_rungs(Notebook& notebook, const Plan& plan, std::int64_t n) {
  const bench::ThreadScope scope(1);
  record_peak(notebook, DType::Float32, 1, 0.05);
  const Product product(square(n, 1), notebook.seed());
  Field field(product, Output::Reused);
  const float* a = product.a.data<float>();
  const float* b = product.b.data<float>();
  for (const Rung& rung : rungs()) {
    field.add<float>(std::string(rung.name),
                     [n, a, b, multiply = rung.multiply](float* c) { multiply(n, a, b, c); });
  }
  field.record(notebook, turns(notebook, plan, 1), {{"group", "rungs"}});
}

void count_rungs(Notebook& notebook, std::int64_t n) {
  const Counter counter(notebook.machine());
  counter.introduce(notebook);
  std::vector<TrialRun> runs;
  for (const Rung& rung : rungs()) runs.push_back({"rung:" + std::string(rung.name), n, 1});
  counter.record(notebook, runs);
}

/// The packed rung on all threads in three ways, compared with the engine.
void measure_threads(Notebook& notebook, const Plan& plan, std::int64_t n, int threads) {
  const bench::ThreadScope scope(threads);
  record_peak(notebook, DType::Float32, threads, 0.05);
  const Product product(square(n, threads), notebook.seed());
  Field field(product, Output::Reused);
  const float* a = product.a.data<float>();
  const float* b = product.b.data<float>();
  for (const ThreadedRung& rung : threaded_rungs()) {
    field.add<float>(std::string(rung.name),
                     [=, multiply = rung.multiply](float* c) { multiply(n, a, b, c, threads); });
  }
  field.add_kernel();
  field.record(notebook, turns(notebook, plan, threads), {{"group", "threads"}});
}

void measure_libraries(Notebook& notebook, const Plan& plan, std::int64_t n, int threads,
                       const bench::peers::OpenedBlas& opened, PythonPeer* python) {
  const bench::ThreadScope scope(threads);
  record_peak(notebook, DType::Float32, threads, 0.05);
  const Product product(square(n, threads), notebook.seed());
  Field field(product, Output::Reused);
  field.add_kernel();
  for (const bench::peers::Blas& blas : opened.found) field.add_blas(blas);
  field.add_python(python, "numpy");
  field.add_python(python, "torch");
  field.record(notebook, turns(notebook, plan, threads), {{"group", "libraries"}});
}

}  // namespace

void run_ladder(Notebook& notebook) {
  const Plan plan = lab::plan(notebook.quick());
  notebook.part("rungs", [&] { introduce(notebook); });
  for (const std::int64_t n : plan.rung_sizes) {
    notebook.part(fmt::format("rungs at {}", n), [&] { measure_rungs(notebook, plan, n); });
  }
  notebook.part("counts", [&] { count_rungs(notebook, plan.counted_size); });

  std::vector<int> thread_counts = {1};
  if (notebook.threads() > 1) {
    thread_counts.push_back(notebook.threads());
    for (const std::int64_t n : plan.thread_sizes) {
      notebook.part(fmt::format("threads at {}", n),
                    [&] { measure_threads(notebook, plan, n, notebook.threads()); });
    }
  } else {
    notebook.part("threads", [&] {
      notebook.absent("the comparison of three ways to use threads", "there is one thread");
    });
  }

  const std::vector<std::string> names = {"openblas", "blis"};
  const bench::peers::OpenedBlas opened = bench::peers::open_blas(names);
  notebook.part("libraries", [&] { record_libraries(notebook, opened); });
  LazyPython python;
  for (const int threads : thread_counts) {
    for (const std::int64_t n : plan.library_sizes) {
      notebook.part(fmt::format("libraries at {} on {} threads", n, threads), [&] {
        measure_libraries(notebook, plan, n, threads, opened, python.get(notebook, threads));
      });
    }
  }
}

}  // namespace baregrad::lab

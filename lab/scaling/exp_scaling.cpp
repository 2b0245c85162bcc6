// The same work on one thread up to all.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "baregrad/ops.h"
#include "bench/ceilings.h"
#include "bench/harness.h"
#include "bench/matmul_truth.h"
#include "lab/experiments.h"
#include "lab/scaling/amdahl.h"
#include "lab/thread_counts.h"
#include "lab/timing.h"

namespace baregrad::lab {
namespace {

/// One piece of work. Results are allocated on every call.
struct Work {
  std::string name;
  std::int64_t n;
  bool arithmetic;  ///< bound by arithmetic; else by memory
  double flops;     ///< per call
  double bytes;     ///< read and written, per call
  std::function<Tensor()> run;
  std::function<double(const Tensor&)> error;  ///< of a result, compared with sums in wider types
  std::function<double(int threads, double seconds)> ceiling;  ///< of the machine, per second
  std::string ceiling_name;  ///< "multiply-adds", ...: the loop behind `ceiling`
};

Tensor draw(const Dims& shape, std::uint64_t seed) {
  Generator generator(seed);
  return uniform(shape, -1, 1, DType::Float32, &generator);
}

/// The greatest relative distance to `truth(i)` over some elements.
template <class Truth>
double spread_error(const Tensor& result, Truth truth) {
  const std::int64_t n = result.numel();
  double worst = 0;
  for (std::int64_t i = 0; i < n; i += std::max<std::int64_t>(1, n / 4096)) {
    const double expected = truth(i);
    const double distance = std::abs(static_cast<double>(result.data<float>()[i]) - expected);
    worst = std::max(worst, distance / std::max(std::abs(expected), 1e-30));
  }
  return worst;
}

double fma_flop_per_s(int threads, double seconds) {
  return 1e9 * bench::fma_gflop_per_s(32, threads, seconds);
}
std::function<double(int, double)> stream_of(bench::Stream stream, double bytes) {
  return [=](int threads, double seconds) {
    return 1e9 * bench::stream_gb_per_s(stream, static_cast<std::size_t>(bytes), threads, seconds);
  };
}

Work matmul_work(std::int64_t n, std::uint64_t seed) {
  const Tensor a = draw({n, n}, seed);
  const Tensor b = draw({n, n}, seed + 1);
  bench::MatmulCase product{};
  product.m = product.n = product.k = n;
  const auto truth = std::make_shared<bench::MatmulTruth>(product, a, b);
  return {"matmul",
          n,
          true,
          product.flops(),
          product.bytes(),
          [=] { return matmul(a, b); },
          [=](const Tensor& c) { return truth->max_error(c.data<float>()); },
          fma_flop_per_s,
          "multiply-adds"};
}

Work exp_work(std::int64_t n, std::uint64_t seed) {
  const Tensor x = draw({n}, seed);
  const auto count = static_cast<double>(n);
  return {"exp",
          n,
          true,
          count,
          8 * count,
          [=] { return exp(x); },
          [=](const Tensor& y) {
            return spread_error(y, [&](std::int64_t i) {
              return std::exp(static_cast<double>(x.data<float>()[i]));
            });
          },
          fma_flop_per_s,
          "multiply-adds"};
}

Work add_work(std::int64_t n, std::uint64_t seed) {
  const Tensor x = draw({n}, seed);
  const Tensor y = draw({n}, seed + 1);
  const auto count = static_cast<double>(n);
  return {"add",
          n,
          false,
          count,
          12 * count,
          [=] { return x + y; },
          [=](const Tensor& z) {
            return spread_error(z, [&](std::int64_t i) {
              return static_cast<double>(x.data<float>()[i]) +
                     static_cast<double>(y.data<float>()[i]);
            });
          },
          stream_of(bench::Stream::Add, 12 * count),
          "streams of additions"};
}

Work sum_work(std::int64_t n, std::uint64_t seed) {
  // All of one sign: the relative error of a sum near 0 is meaningless.
  const Tensor x = draw({n}, seed) + 2.0;
  const auto count = static_cast<double>(n);
  return {"sum",
          n,
          false,
          count,
          4 * count,
          [=] { return sum(x); },
          [=](const Tensor& total) {
            long double truth = 0;
            for (std::int64_t i = 0; i < n; ++i)
              truth += static_cast<long double>(x.data<float>()[i]);
            return spread_error(total, [&](std::int64_t) { return static_cast<double>(truth); });
          },
          stream_of(bench::Stream::Read, 4 * count),
          "streams of reads"};
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.data<float>(), b.data<float>(),
                     static_cast<std::size_t>(a.numel()) * sizeof(float)) == 0;
}

Contender on_threads(const Work& work, int threads) {
  const Contender timed = contender_once(work.name, [&work] { bench::keep(work.run()); });
  return {work.name, [=] {
            const bench::ThreadScope scope(threads);
            return timed.sample_ns();
          }};
}

struct Measured {
  std::vector<ThreadTimes> times;
  std::vector<Timing> timings;
};

Measured measure(const Work& work, const std::vector<int>& counts, double seconds) {
  std::vector<Contender> contenders;
  for (const int threads : counts) contenders.push_back(on_threads(work, threads));
  Turns turns{.seconds = seconds, .least = 5};
  if (counts.size() > 1) turns.settle = std::chrono::milliseconds(20);
  std::vector<std::vector<double>> samples = take_samples(contenders, turns);
  Measured measured;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    measured.timings.push_back(summarize(samples[i]));
    measured.times.push_back({counts[i], std::move(samples[i])});
  }
  return measured;
}

void add_times(Notebook& notebook, const Work& work, const Measured& measured, bool quick) {
  Tensor first;
  for (std::size_t i = 0; i < measured.times.size(); ++i) {
    const int threads = measured.times[i].threads;
    const Timing& timing = measured.timings[i];
    const bench::ThreadScope scope(threads);
    const Tensor result = work.run();
    if (i == 0) first = result;
    const double seconds = timing.median_ns / 1e9;
    Json record = {{"name", work.name},
                   {"n", work.n},
                   {"dtype", "float32"},
                   {"bound_by", work.arithmetic ? "arithmetic" : "memory"},
                   {"threads", threads}};
    record.update(to_json(timing));
    record.update({{"speedup", measured.timings.front().median_ns / timing.median_ns},
                   {"gflop_per_s", work.flops / seconds / 1e9},
                   {"gb_per_s", work.bytes / seconds / 1e9},
                   {"ceiling", work.ceiling_name},
                   {"ceiling_per_s", work.ceiling(threads, quick ? 0.02 : 0.2)},
                   {"max_error", work.error(result)},
                   {"same_bits", same_bits(first, result)}});
    notebook.add("scaling", record);
  }
}

void add_fit(Notebook& notebook, const Work& work, const Measured& measured) {
  const AmdahlFit fit = fit_amdahl(measured.times, notebook.seed());
  notebook.add("amdahl", {{"name", work.name},
                          {"serial_fraction", fit.serial_fraction},
                          {"low", fit.low},
                          {"high", fit.high},
                          {"confidence", kConfidence},
                          {"one_thread_ns", fit.one_thread_ns},
                          {"misfit", fit.misfit},
                          {"points", fit.points}});
}

void do_work(Notebook& notebook, const Work& work, const std::vector<int>& counts) {
  const Measured measured = measure(work, counts, notebook.quick() ? 0.5 : 7);
  add_times(notebook, work, measured, notebook.quick());
  if (counts.size() > 1) add_fit(notebook, work, measured);
}

/// The requested number of elements, or as many as fit into an eighth of the memory with `arrays`
/// arrays.
std::int64_t fitting(const Notebook& notebook, std::int64_t n, int arrays) {
  const auto memory = static_cast<std::int64_t>(notebook.machine().memory_bytes);
  return memory == 0 ? n : std::min(n, memory / 8 / (4 * arrays));
}

}  // namespace

void run_scaling(Notebook& notebook) {
  const std::vector<int> counts = thread_counts(notebook.threads());
  if (counts.size() == 1) {
    notebook.part("threads", [&] {
      notebook.absent("speedup", "there is one thread here: nothing to scale with");
    });
  }
  constexpr std::int64_t kMillion = 1 << 20;
  const bool quick = notebook.quick();
  const std::uint64_t seed = notebook.seed();
  notebook.part("matmul",
                [&] { do_work(notebook, matmul_work(quick ? 512 : 1024, seed), counts); });
  notebook.part("exp",
                [&] { do_work(notebook, exp_work(kMillion / (quick ? 4 : 1), seed), counts); });
  notebook.part("add", [&] {
    do_work(notebook, add_work(fitting(notebook, kMillion * (quick ? 8 : 32), 3), seed), counts);
  });
  notebook.part("sum", [&] {
    do_work(notebook, sum_work(fitting(notebook, kMillion * (quick ? 16 : 64), 2), seed), counts);
  });
}

}  // namespace baregrad::lab

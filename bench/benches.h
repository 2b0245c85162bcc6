// The benchmarks of `baregrad bench`, by name.
#pragma once

#include <span>
#include <string_view>

#include "bench/harness.h"

namespace baregrad::bench {

struct Bench {
  std::string_view name;
  std::string_view doc;
  std::string_view sizes;  ///< the meaning of --sizes for this benchmark
  void (*run)(Session& session);
  /// Options that it takes beyond those of all benchmarks.
  std::span<const std::string_view> options = {};
};

std::span<const Bench> benches();
/// Throws ValueError and lists the names.
const Bench& find_bench(std::string_view name);

// Each in a file of its own.
void bench_elementwise(Session& session);
void bench_reduce(Session& session);
void bench_overhead(Session& session);
void bench_alloc(Session& session);
void bench_parallel(Session& session);
void bench_matmul(Session& session);
void bench_autograd(Session& session);
void bench_train(Session& session);
void bench_conv(Session& session);
void bench_optim(Session& session);
void bench_norm(Session& session);

}  // namespace baregrad::bench

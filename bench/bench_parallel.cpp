// Fork-join latency as rows: our pool and OpenMP.
#include <algorithm>
#include <string>
#include <vector>

#include "baregrad/error.h"
#include "baregrad/parallel.h"
#include "bench/benches.h"
#include "bench/parallel_bench.h"

namespace baregrad::bench {
namespace {

std::vector<int> thread_counts(const Session& session) {
  std::vector<int> counts;
  if (!session.options().sizes.empty()) {
    for (const std::int64_t size : session.options().sizes) {
      if (size < 1 || size > 1024) {
        throw ValueError("bench parallel: --sizes are thread counts here, 1 to 1024, not " +
                         std::to_string(size));
      }
      counts.push_back(static_cast<int>(size));
    }
    return counts;
  }
  counts = {2, session.threads(), 2 * session.threads()};
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  counts.erase(std::remove(counts.begin(), counts.end(), 1), counts.end());
  return counts;
}

}  // namespace

void bench_parallel(Session& session) {
  struct Kind {
    const char* name;
    std::vector<ForkJoin> (*measure)(const std::vector<int>&, int);
  };
  constexpr int kRounds = 30;
  const int rounds = session.options().quick ? 3 : kRounds;
  for (const Kind& kind : {Kind{"empty region", measure_fork_join},
                           Kind{"all threads show up", measure_fork_join_all_present}}) {
    for (const int threads : thread_counts(session)) {
      session.announce(std::string(kind.name) + ", " + std::to_string(threads) + " threads");
      for (const ForkJoin& f : kind.measure({threads}, rounds)) {
        Result ours;
        ours.row = kind.name;
        ours.shape = "[" + std::to_string(f.threads) + " threads]";
        ours.threads = f.threads;
        ours.repeats = f.samples;
        Result openmp = ours;
        ours.implementation = kOurs;
        ours.median_ns = f.ours_ns_median;
        ours.p10_ns = f.ours_p10;
        ours.p90_ns = f.ours_p90;
        openmp.implementation = "OpenMP";
        openmp.median_ns = f.openmp_median;
        openmp.p10_ns = f.openmp_p10;
        openmp.p90_ns = f.openmp_p90;
        session.add({ours, openmp});
      }
    }
  }
}

}  // namespace baregrad::bench

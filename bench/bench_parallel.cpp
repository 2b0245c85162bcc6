// Fork-join latency, and short work after pauses, as rows: our pool and OpenMP.
#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "baregrad/error.h"
#include "baregrad/parallel.h"
#include "bench/benches.h"
#include "bench/parallel_bench.h"

namespace baregrad::bench {
namespace {

using namespace std::chrono_literals;

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

void add_rows(Session& session, const std::string& name, const std::vector<ForkJoin>& measured) {
  for (const ForkJoin& f : measured) {
    Result ours;
    ours.row = name;
    ours.shape = fmt::format("[{} threads]", f.threads);
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

struct Kind {
  std::string name;
  int rounds;
  std::function<std::vector<ForkJoin>(const std::vector<int>&, int)> measure;
};

std::vector<Kind> kinds() {
  std::vector<Kind> all = {{"empty region", 30, measure_fork_join},
                           {"all threads show up", 30, measure_fork_join_all_present}};
  for (const std::chrono::microseconds work : {5us, 50us}) {
    for (const std::chrono::microseconds pause : {0us, 20us, 200us, 2000us}) {
      const std::string name =
          fmt::format("{} us of work after {} us", work.count(), pause.count());
      all.push_back({name, 10, [work, pause](const std::vector<int>& threads, int rounds) {
                       return measure_after_pause(threads, work, pause, rounds);
                     }});
    }
  }
  return all;
}

}  // namespace

void bench_parallel(Session& session) {
  for (const Kind& kind : kinds()) {
    for (const int threads : thread_counts(session)) {
      session.announce(kind.name + ", " + std::to_string(threads) + " threads");
      const int rounds = session.options().quick ? kind.rounds / 10 : kind.rounds;
      add_rows(session, kind.name, kind.measure({threads}, rounds));
    }
  }
}

}  // namespace baregrad::bench

// Joules per product and per training step, by the processor's energy counters.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "baregrad/generator.h"
#include "baregrad/ops.h"
#include "bench/harness.h"
#include "lab/energy/energy.h"
#include "lab/energy/rapl.h"
#include "lab/experiments.h"
#include "lab/small_step.h"

namespace baregrad::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 3;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Work {
  std::string name;
  std::string text;
  std::int64_t n;
  std::function<void()> once;
};

std::vector<Work> all_work(const Notebook& notebook) {
  std::vector<Work> all;
  Generator generator(notebook.seed());
  const std::vector<std::int64_t> sizes =
      notebook.quick() ? std::vector<std::int64_t>{256} : std::vector<std::int64_t>{256, 1024};
  for (const std::int64_t n : sizes) {
    const Tensor a = randn({n, n}, DType::Float32, &generator);
    const Tensor b = randn({n, n}, DType::Float32, &generator);
    const std::string size = std::to_string(n);
    all.push_back({"product " + size, size + " × " + size + " × " + size, n,
                   [=] { bench::keep(matmul(a, b)); }});
  }
  auto step = std::make_shared<SmallStep>(notebook.seed());
  all.push_back({"step", SmallStep::kText, 0, [=] { step->run(); }});
  return all;
}

/// The different ones of: one, two, half of all, all.
std::vector<int> doubled_threads(int most) {
  std::vector<int> counts;
  for (const int count : {1, 2, most / 2, most}) {
    if (count >= 1 && count <= most) counts.push_back(count);
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

struct Spent {
  double joules = 0;
  double seconds = 0;
  double calls = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Spent spend(const Rapl& rapl, double seconds, const std::function<void()>& once) {
  once();  // fills caches and pools
  const Rapl::Reading before = rapl.read();
  const Clock::time_point start = Clock::now();
  Spent spent;
  do {
    once();
    ++spent.calls;
    spent.seconds = seconds_since(start);
  } while (spent.seconds < seconds);
  spent.joules = rapl.joules(before, rapl.read());
  return spent;
}

double measure_idle(Notebook& notebook, const Rapl& rapl, double seconds) {
  const auto nothing = [&] { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); };
  const Spent spent = spend(rapl, seconds, nothing);
  const double watts = spent.joules / spent.seconds;
  notebook.add("idle", {{"joules", spent.joules}, {"seconds", spent.seconds}, {"watts", watts}});
  return watts;
}

/// Median of the rounds, per call.
struct PerCall {
  double joules = 0;
  double seconds = 0;
};

PerCall record(Notebook& notebook, const Work& work, int threads,
               const std::vector<Spent>& rounds) {
  std::vector<double> joules;
  std::vector<double> seconds;
  std::vector<double> watts;
  for (const Spent& spent : rounds) {
    joules.push_back(spent.joules / spent.calls);
    seconds.push_back(spent.seconds / spent.calls);
    watts.push_back(spent.joules / spent.seconds);
  }
  const PerCall each{median(joules), median(seconds)};
  notebook.add("energy",
               {{"name", work.name},
                {"work", work.text},
                {"n", work.n},
                {"dtype", "float32"},
                {"threads", threads},
                {"rounds", rounds.size()},
                {"joules_per_call", each.joules},
                {"least_joules_per_call", *std::min_element(joules.begin(), joules.end())},
                {"most_joules_per_call", *std::max_element(joules.begin(), joules.end())},
                {"seconds_per_call", each.seconds},
                {"watts", median(watts)}});
  return each;
}

void measure_work(Notebook& notebook, const Rapl& rapl, const Work& work, double seconds,
                  double idle_watts) {
  const std::vector<int> counts = doubled_threads(notebook.threads());
  std::vector<std::vector<Spent>> spent(counts.size());
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const bench::ThreadScope scope(counts[i]);
      spent[i].push_back(spend(rapl, seconds, work.once));
    }
  }
  std::vector<PerCall> each;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    each.push_back(record(notebook, work, counts[i], spent[i]));
  }
  if (counts.size() < 2 || each.back().seconds > each.front().seconds) return;
  const Race race = race_to_sleep(each.front().joules, each.front().seconds, each.back().joules,
                                  each.back().seconds, idle_watts);
  notebook.add("race", {{"name", work.name},
                        {"slow_threads", counts.front()},
                        {"fast_threads", counts.back()},
                        {"slow_joules", race.slow_joules},
                        {"fast_joules", race.fast_joules}});
}

}  // namespace

Race race_to_sleep(double slow_joules, double slow_seconds, double fast_joules, double fast_seconds,
                   double idle_watts) {
  return {slow_joules, fast_joules + idle_watts * (slow_seconds - fast_seconds)};
}

void measure_energy(Notebook& notebook, const std::string& powercap) {
  std::string why;
  const std::optional<Rapl> rapl = Rapl::open(powercap, why);
  notebook.part("counters", [&] {
    if (!rapl) {
      notebook.absent("energy", why);
      return;
    }
    Json names = Json::array();
    for (const Rapl::Zone& zone : rapl->zones()) names.push_back(zone.name);
    notebook.add("counters", {{"zones", names}});
    notebook.note(
        "The counters are those of the whole processor: whatever else runs on it is counted too.");
  });
  if (!rapl) return;
  const std::vector<Work> all = all_work(notebook);
  // A counter is updated every millisecond: samples of 50 ms are accurate to 2 %.
  const auto samples =
      static_cast<double>(kRounds * all.size() * doubled_threads(notebook.threads()).size());
  const double seconds = std::max(0.05, (notebook.quick() ? 1.2 : 8.0) / samples);
  // One part: all numbers are compared with the idle power measured at the same time.
  notebook.part("energy", [&] {
    const double idle_watts = measure_idle(notebook, *rapl, notebook.quick() ? 0.2 : 1.0);
    for (const Work& work : all) measure_work(notebook, *rapl, work, seconds, idle_watts);
  });
}

void run_energy(Notebook& notebook) { measure_energy(notebook, Rapl::kFolder); }

}  // namespace baregrad::lab

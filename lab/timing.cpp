// Turns, samples, quantiles.
#include "lab/timing.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "bench/quantile.h"

namespace baregrad::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSampleNs = 50e3;  // reading the clock takes a few tens of nanoseconds
// At most this many calls per sample, for work that takes almost no time.
constexpr std::int64_t kMostCalls = std::int64_t{1} << 20;

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

double median_of(const std::vector<double>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/// After a pause workers sleep and caches hold other data. Programs that call the work repeatedly
/// do not pay for this, so the first sample of short work is dropped and several follow.
void take_turn(const Contender& contender, const Turns& turns, std::vector<double>& samples) {
  constexpr double kShortNs = 20e6;
  constexpr int kSamples = 8;
  if (turns.settle.count() == 0) {
    samples.push_back(contender.sample_ns());
    return;
  }
  std::this_thread::sleep_for(turns.settle);
  const double first = contender.sample_ns();
  if (first > kShortNs) {
    samples.push_back(first);
    return;
  }
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < kSamples && (i == 0 || ns_since(start) < kShortNs); ++i) {
    samples.push_back(contender.sample_ns());
  }
}

}  // namespace

Timing summarize(std::vector<double> samples_ns) {
  std::sort(samples_ns.begin(), samples_ns.end());
  return {median_of(samples_ns), bench::quantile(samples_ns, 0.1), bench::quantile(samples_ns, 0.9),
          static_cast<int>(samples_ns.size())};
}

Json to_json(const Timing& timing) {
  return {{"median_ns", timing.median_ns},
          {"p10_ns", timing.p10_ns},
          {"p90_ns", timing.p90_ns},
          {"repeats", timing.repeats}};
}

Contender contender(std::string name, std::function<void(std::int64_t calls)> run) {
  auto calls = std::make_shared<std::int64_t>(0);  // 0: not known yet
  return {std::move(name), [run = std::move(run), calls] {
            const auto once_ns = [&](std::int64_t count) {
              const Clock::time_point start = Clock::now();
              run(count);
              return ns_since(start) / static_cast<double>(count);
            };
            if (*calls != 0) return once_ns(*calls);
            *calls = 1;
            double ns = once_ns(1);
            while (ns * static_cast<double>(*calls) < kSampleNs && *calls < kMostCalls) {
              *calls *= 2;
              ns = std::min(ns, once_ns(*calls));
            }
            return ns;
          }};
}

std::vector<std::vector<double>> take_samples(const std::vector<Contender>& contenders,
                                              const Turns& turns) {
  std::vector<std::vector<double>> samples(contenders.size());
  const Clock::time_point start = Clock::now();
  // The first call of each contender fills caches and pools. It counts only if a second one would
  // take longer than the whole budget.
  std::vector<bool> slow(contenders.size());
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const double ns = contenders[i].sample_ns();
    slow[i] = ns > turns.seconds * 1e9;
    if (slow[i]) samples[i].push_back(ns);
  }
  for (int round = 0; round < turns.most; ++round) {
    const bool in_time = ns_since(start) < turns.seconds * 1e9;
    bool any = false;
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      // A contender that is slower than the whole budget has had one turn, and gets no more than
      // the least number.
      const int least = slow[i] ? turns.least - 1 : turns.least;
      if ((slow[i] || !in_time) && round >= least) continue;
      take_turn(contenders[i], turns, samples[i]);
      any = true;
    }
    if (!any) break;
  }
  return samples;
}

std::vector<Timing> take_turns(const std::vector<Contender>& contenders, const Turns& turns) {
  std::vector<Timing> timings;
  for (std::vector<double>& each : take_samples(contenders, turns)) {
    timings.push_back(summarize(std::move(each)));
  }
  return timings;
}

}  // namespace baregrad::lab

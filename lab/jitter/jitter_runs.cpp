// getrusage, /proc, sched_setaffinity.
#include "lab/jitter/jitter_runs.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/quantile.h"

namespace baregrad::lab {
namespace {

using Clock = std::chrono::steady_clock;

// A run that waited for less than this share of its time is not slow because of that.
constexpr double kWaitCounts = 0.02;

/// The start of a file in /proc that stays open; empty when it cannot be read.
class Text {
 public:
  explicit Text(int file) {
    const ssize_t got = file < 0 ? -1 : ::pread(file, buffer_.data(), buffer_.size() - 1, 0);
    length_ = got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  std::string_view view() const { return {buffer_.data(), length_}; }
  const char* data() const { return buffer_.data(); }

 private:
  std::array<char, 4096> buffer_{};
  std::size_t length_ = 0;
};

std::int64_t migrations_in(const Text& text) {
  constexpr std::string_view kKey = "nr_migrations";
  const std::size_t at = text.view().find(kKey);
  if (at == std::string_view::npos) return -1;
  const std::size_t colon = text.view().find(':', at);
  long long count = -1;
  if (colon != std::string_view::npos) std::sscanf(text.data() + colon + 1, "%lld", &count);
  return count;
}

/// "cpu  user nice system idle iowait irq softirq steal ..."
std::int64_t steal_in(const Text& text) {
  long long ticks = -1;
  std::sscanf(text.data(), "cpu %*d %*d %*d %*d %*d %*d %*d %lld", &ticks);
  return ticks;
}

/// "running waiting slices", in nanoseconds.
std::int64_t waited_in(const Text& text) {
  long long ns = -1;
  std::sscanf(text.data(), "%*d %lld", &ns);
  return ns;
}

/// The file, or -1 if it lacks what `parse` reads.
template <class Parse>
int open_if(const char* path, Parse parse) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 || parse(Text(file)) >= 0) return file;
  ::close(file);
  return -1;
}

Happened operator-(const Happened& after, const Happened& before) {
  return {after.preempted - before.preempted,   after.slept - before.slept,
          after.migrations - before.migrations, after.faults - before.faults,
          after.stolen - before.stolen,         after.waited_ns - before.waited_ns};
}

std::vector<double> sorted_ns(const std::vector<TimedRun>& runs) {
  std::vector<double> ns;
  for (const TimedRun& run : runs) ns.push_back(run.ns);
  std::sort(ns.begin(), ns.end());
  return ns;
}

void count(const TimedRun& run, double median_ns, Explained& into) {
  const Happened& seen = run.happened;
  const bool waited = static_cast<double>(seen.waited_ns) > kWaitCounts * median_ns;
  ++into.runs;
  into.preempted += seen.preempted > 0 ? 1 : 0;
  into.migrated += seen.migrations > 0 ? 1 : 0;
  into.faulted += seen.faults > 0 ? 1 : 0;
  into.stolen += seen.stolen > 0 ? 1 : 0;
  into.waited += waited ? 1 : 0;
  const bool any =
      seen.preempted > 0 || seen.migrations > 0 || seen.faults > 0 || seen.stolen > 0 || waited;
  into.nothing += any ? 0 : 1;
  into.excess_ns += std::max(0.0, run.ns - median_ns);
  into.waited_ns += static_cast<double>(seen.waited_ns);
}

}  // namespace

Witness::Witness()
    : sched_(open_if("/proc/thread-self/sched", migrations_in)),
      stat_(open_if("/proc/stat", steal_in)),
      schedstat_(open_if("/proc/thread-self/schedstat", waited_in)) {}

Witness::~Witness() {
  for (const int file : {sched_, stat_, schedstat_}) {
    if (file >= 0) ::close(file);
  }
}

Happened Witness::now() const {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  Happened counts;
  counts.preempted = usage.ru_nivcsw;
  counts.slept = usage.ru_nvcsw;
  counts.faults = usage.ru_minflt + usage.ru_majflt;
  if (has_migrations()) counts.migrations = migrations_in(Text(sched_));
  if (has_steal()) counts.stolen = steal_in(Text(stat_));
  if (has_waiting()) counts.waited_ns = waited_in(Text(schedstat_));
  return counts;
}

TimedRun Witness::watch(const std::function<void()>& body) const {
  const Happened before = now();
  const int cpu = ::sched_getcpu();
  const Clock::time_point start = Clock::now();
  body();
  const Clock::time_point end = Clock::now();
  const int cpu_after = ::sched_getcpu();
  TimedRun run{std::chrono::duration<double, std::nano>(end - start).count(), now() - before};
  // Where the kernel does not count migrations, one that was not undone is detected here.
  if (!has_migrations() && cpu != cpu_after) run.happened.migrations = 1;
  return run;
}

struct PinScope::Before {
  cpu_set_t cpus;
};

PinScope::PinScope() : before_(std::make_unique<Before>()) {
  if (::sched_getaffinity(0, sizeof(cpu_set_t), &before_->cpus) != 0) return;
  const int cpu = ::sched_getcpu();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(cpu), &one);
  if (::sched_setaffinity(0, sizeof one, &one) == 0) cpu_ = cpu;
}

PinScope::~PinScope() {
  if (ok()) ::sched_setaffinity(0, sizeof(cpu_set_t), &before_->cpus);
}

Spread spread_of(const std::vector<TimedRun>& runs) {
  const std::vector<double> ns = sorted_ns(runs);
  return {bench::quantile(ns, 0.5), bench::quantile(ns, 0.9), bench::quantile(ns, 0.99),
          bench::quantile(ns, 0.999), ns.back()};
}

Tail explain_tail(const std::vector<TimedRun>& runs) {
  const double median_ns = spread_of(runs).p50_ns;
  std::vector<const TimedRun*> order;
  for (const TimedRun& run : runs) order.push_back(&run);
  std::stable_sort(order.begin(), order.end(),
                   [](const TimedRun* x, const TimedRun* y) { return x->ns > y->ns; });
  const auto slowest =
      static_cast<std::size_t>(std::max(1.0, kSlowestShare * static_cast<double>(runs.size())));
  Tail tail;
  for (std::size_t i = 0; i < order.size(); ++i) {
    count(*order[i], median_ns, i < slowest ? tail.slowest : tail.others);
  }
  return tail;
}

}  // namespace baregrad::lab

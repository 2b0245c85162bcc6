// Repeated runs of the same work, with the events of the thread during each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace baregrad::lab {

/// Counts of the kernel. The difference of two is what happened between them.
struct Happened {
  std::int64_t preempted = 0;   ///< involuntary switches to another thread
  std::int64_t slept = 0;       ///< voluntary switches
  std::int64_t migrations = 0;  ///< to another CPU
  std::int64_t faults = 0;      ///< page faults
  /// Clock ticks that the hypervisor gave to other machines, on all CPUs.
  std::int64_t stolen = 0;
  std::int64_t waited_ns = 0;  ///< ready to run, but not running

  bool any() const {
    return preempted > 0 || slept > 0 || migrations > 0 || faults > 0 || stolen > 0 ||
           waited_ns > 0;
  }
};

struct TimedRun {
  double ns = 0;
  Happened happened;
};

/// Reads the counters of the thread that constructed it. Counts that the system does not report
/// stay 0; the has_* functions tell which it reports.
class Witness {
 public:
  Witness();
  ~Witness();
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  bool has_migrations() const noexcept { return sched_ >= 0; }
  bool has_steal() const noexcept { return stat_ >= 0; }
  bool has_waiting() const noexcept { return schedstat_ >= 0; }

  /// Times `body` once.
  TimedRun watch(const std::function<void()>& body) const;

 private:
  Happened now() const;

  int sched_;      // /proc/thread-self/sched
  int stat_;       // /proc/stat
  int schedstat_;  // /proc/thread-self/schedstat
};

/// Pins the calling thread to its current CPU for a scope; ok() is false where that is not allowed.
class PinScope {
 public:
  PinScope();
  ~PinScope();
  PinScope(const PinScope&) = delete;
  PinScope& operator=(const PinScope&) = delete;
  bool ok() const noexcept { return cpu_ >= 0; }
  int cpu() const noexcept { return cpu_; }

 private:
  struct Before;
  std::unique_ptr<Before> before_;
  int cpu_ = -1;
};

/// Quantiles of the times: half, nine tenths, ... of the runs are faster.
struct Spread {
  double p50_ns = 0;
  double p90_ns = 0;
  double p99_ns = 0;
  double p999_ns = 0;
  double max_ns = 0;
};
Spread spread_of(const std::vector<TimedRun>& runs);

/// The share of all runs that counts as the slowest.
inline constexpr double kSlowestShare = 0.01;

/// How many of some runs had each kind of event. A run may count several times.
struct Explained {
  std::int64_t runs = 0;
  std::int64_t preempted = 0;
  std::int64_t migrated = 0;
  std::int64_t faulted = 0;
  std::int64_t stolen = 0;
  std::int64_t waited = 0;   ///< longer than a fiftieth of the median run
  std::int64_t nothing = 0;  ///< none of these
  double excess_ns = 0;      ///< total time beyond the median
  double waited_ns = 0;      ///< of it: ready but not running
};
/// The explanation of the slowest runs (at least one), and of all others.
struct Tail {
  Explained slowest;
  Explained others;
};
Tail explain_tail(const std::vector<TimedRun>& runs);

}  // namespace baregrad::lab

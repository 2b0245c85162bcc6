// The same work many times, and what happened to the thread during each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace baregrad::lab {

/// What the kernel counts. The difference of two says what happened between them.
struct Happened {
  std::int64_t preempted = 0;   ///< taken off the CPU for another thread
  std::int64_t slept = 0;       ///< gave the CPU up itself
  std::int64_t migrations = 0;  ///< to another CPU
  std::int64_t faults = 0;      ///< pages that were not there
  std::int64_t stolen = 0;      ///< clock ticks that the hypervisor gave to others, on all CPUs
  std::int64_t waited_ns = 0;   ///< ready to run, but not running

  bool any() const {
    return preempted > 0 || slept > 0 || migrations > 0 || faults > 0 || stolen > 0 ||
           waited_ns > 0;
  }
};

struct TimedRun {
  double ns = 0;
  Happened happened;
};

/// Reads the counters of the thread that made it. What the system does not say stays 0, and the
/// has_ functions tell.
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

/// Keeps the calling thread on the CPU that it is on while it lives; ok() is false where that is
/// not allowed.
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

/// Where half, nine tenths, ... of the runs end.
struct Spread {
  double p50_ns = 0;
  double p90_ns = 0;
  double p99_ns = 0;
  double p999_ns = 0;
  double max_ns = 0;
};
Spread spread_of(const std::vector<TimedRun>& runs);

/// Of all runs, those that are called the slowest.
inline constexpr double kSlowestShare = 0.01;

/// How many of some runs each thing happened to. One run may be counted several times.
struct Explained {
  std::int64_t runs = 0;
  std::int64_t preempted = 0;
  std::int64_t migrated = 0;
  std::int64_t faulted = 0;
  std::int64_t stolen = 0;
  std::int64_t waited = 0;   ///< longer than a fiftieth of the median run
  std::int64_t nothing = 0;  ///< none of these
  double excess_ns = 0;      ///< time beyond the median, of all together
  double waited_ns = 0;      ///< of it, ready but not running
};
/// Of the slowest (at least one run), and of all others.
struct Tail {
  Explained slowest;
  Explained others;
};
Tail explain_tail(const std::vector<TimedRun>& runs);

}  // namespace baregrad::lab

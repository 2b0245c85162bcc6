// Which cores threads may run on, and moving a thread that the scheduler has put behind another.
//
// Schedulers like to wake a thread on the core of its waker, also where other cores are idle. The
// thread then waits there for the rest of the waker's time slice. Two threads that take turns on a
// core look like one to the load balancer, which may leave the next core idle for seconds.
#pragma once

#include <chrono>

#include <sys/types.h>

namespace baregrad::parallel {

/// Cores in this thread's affinity mask; at least 1.
int cores_in_affinity_mask() noexcept;

/// Moves `thread` (0: the calling one) off `core`, where its affinity mask allows another core. The
/// mask is narrowed for a moment only, so placement is left to the scheduler, and a mask that
/// someone else sets in that moment stays. One that is set between the reading and the change of
/// the mask is lost, since masks cannot be compared and set in one step. So this is not done to a
/// thread that has a core of its own.
void leave_core(pid_t thread, int core) noexcept;

/// Measures how long parallel regions have been without a thread that was woken for them. Time
/// between two regions does not count.
class WakeDelay {
 public:
  using Clock = std::chrono::steady_clock;

  /// The thread has been woken.
  void reset() noexcept { missed_ = {}; }
  /// A region begins, or goes on, without the thread.
  void begin_region() noexcept { last_look_ = Clock::now(); }
  /// Adds the time since begin_region() or the last look. True once the thread must be waiting in
  /// the queue of a core, rather than be on its way.
  bool look() noexcept {
    const Clock::time_point now = Clock::now();
    missed_ += now - last_look_;
    last_look_ = now;
    return missed_ >= kStuck;
  }

 private:
  /// Moving a thread costs as much as waking two.
  static constexpr std::chrono::microseconds kStuck{50};

  Clock::duration missed_{};
  Clock::time_point last_look_{};
};

}  // namespace baregrad::parallel

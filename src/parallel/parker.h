// Parking: where one thread sleeps until another one wakes it.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace baregrad::parallel {

/// Sleeps on a word of its own rather than on the awaited condition: unpark() is a load while the
/// thread is running, and a second unpark() before a slow thread has run costs no system call.
class Parker {
 public:
  /// Returns when unparked, and at once if done(). With an `interval`, on_interval() is called
  /// whenever so much time has passed. True when another thread claimed the wake-up, and so may be
  /// changing this thread's affinity mask.
  template <class Done, class OnInterval>
  bool park_unless(Done done, const timespec* interval, OnInterval on_interval) noexcept {
    state_.store(kParked, std::memory_order_seq_cst);
    // Pairs with the waker, which makes done() true first and reads state_ afterwards.
    if (!done()) {
      while (state_.load(std::memory_order_acquire) == kParked) {
        if (syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, kParked, interval, nullptr, 0) != 0 &&
            errno == ETIMEDOUT) {
          on_interval();
        }
      }
    }
    return state_.exchange(kRunning, std::memory_order_relaxed) == kClaimed;
  }
  template <class Done>
  bool park_unless(Done done) noexcept {
    return park_unless(done, nullptr, [] {});
  }

  /// Whether there was a parked thread to wake.
  bool unpark() noexcept {
    std::uint32_t state = kParked;
    if (state_.load(std::memory_order_seq_cst) != kParked ||
        !state_.compare_exchange_strong(state, kWoken, std::memory_order_acq_rel)) {
      return false;
    }
    syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    return true;
  }

  /// Whether the thread was woken, has not run since, and nobody has claimed the wake-up.
  bool is_waking() const noexcept { return state_.load(std::memory_order_relaxed) == kWoken; }
  /// Claims the wake-up of a thread that has not run since; false when it has, or another did.
  bool claim_wakeup() noexcept {
    std::uint32_t state = kWoken;
    return state_.compare_exchange_strong(state, kClaimed, std::memory_order_relaxed);
  }

  /// For the child of a fork, where the thread does not exist.
  void reset() noexcept { state_.store(kRunning, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kRunning = 0;
  static constexpr std::uint32_t kParked = 1;
  static constexpr std::uint32_t kWoken = 2;
  static constexpr std::uint32_t kClaimed = 3;
  std::atomic<std::uint32_t> state_{kRunning};
};
static_assert(sizeof(std::atomic<std::uint32_t>) == 4, "a futex is 32 bits");

}  // namespace baregrad::parallel

// Interrupting long work: an interrupt check (baregrad/parallel.h) is called between pieces of it.
// Without one, a poll costs one load.
#pragma once

#include <atomic>

#include "parallel/parallel_for.h"

namespace baregrad::parallel {

namespace detail {
extern std::atomic<void (*)()> g_interrupt_check;
void check_interrupt();
}  // namespace detail

BAREGRAD_ALWAYS_INLINE bool has_interrupt_check() noexcept {
  return detail::g_interrupt_check.load(std::memory_order_relaxed) != nullptr;
}

/// Called where work can be abandoned. Throws the exception of the check; in a worker of the pool,
/// throws once its region is abandoned. Costs some nanoseconds while a check is set.
BAREGRAD_ALWAYS_INLINE void poll_interrupt() {
  if (has_interrupt_check()) detail::check_interrupt();
}

/// While alive, this thread does not call the check: for code that holds a lock, since the check
/// may wait for a thread that needs this lock.
class UninterruptedScope {
 public:
  UninterruptedScope() noexcept;
  ~UninterruptedScope();
  UninterruptedScope(const UninterruptedScope&) = delete;
  UninterruptedScope& operator=(const UninterruptedScope&) = delete;

 private:
  bool outer_;
};

/// For the pool: its workers never call the check, and throw while a region is abandoned.
void mark_worker_thread() noexcept;
void set_abandoned(bool abandoned) noexcept;

}  // namespace baregrad::parallel

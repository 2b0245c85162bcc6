// Calls into the engine. Long calls release the interpreter's lock.
#pragma once

#include <cstdint>
#include <utility>

#include <nanobind/nanobind.h>

#include "baregrad/ops.h"

namespace baregrad::python {

/// An op of more elements takes microseconds. Releasing and taking the lock costs some 50 ns, which
/// is then negligible.
inline constexpr std::int64_t kLongWork = 4096;

/// Releases the lock for a scope. Use it instead of nanobind's class: a thread that returns during
/// the interpreter's shutdown waits here until the process ends. Python up to 3.13 would exit the
/// thread in the middle of C++ code, which aborts the process.
class LockReleased {
 public:
  LockReleased() noexcept {
    if (waiting_ != 0 && own_inside_ == 0) [[unlikely]]
      let_pass();
    ++inside_;
    ++own_inside_;
    state_ = PyEval_SaveThread();
  }
  ~LockReleased() {
    come_back(state_);
    --own_inside_;
    --inside_;
  }
  LockReleased(const LockReleased&) = delete;
  LockReleased& operator=(const LockReleased&) = delete;
  /// Called in the child of a fork.
  static void forget_others() noexcept;
  /// Whether another thread is in such a scope: it may be reading any tensor.
  static bool others_inside() noexcept { return inside_ != own_inside_; }

 private:
  friend class Waiting;
  static void come_back(PyThreadState* state) noexcept;
  /// Waits while a thread in wait_for_other_threads() waits for all others to leave.
  static void let_pass() noexcept;

  // All are accessed with the lock held.
  static inline std::int64_t inside_ = 0;
  static inline std::int64_t waiting_ = 0;  // threads in wait_for_other_threads()
  static inline thread_local std::int64_t own_inside_ = 0;
  PyThreadState* state_ = nullptr;
};

/// Call this before the elements of a shared tensor are replaced: it waits until running calls of
/// other threads have ended. Throws ValueError, in the name of `who`, when they take longer than
/// four seconds.
void wait_for_other_threads(const char* who);

/// Calls f, without the lock if the work is long. f must not touch Python objects.
template <class F>
decltype(auto) unlocked_if(bool is_long, F&& f) {
  if (!is_long) return std::forward<F>(f)();
  const LockReleased release;
  return std::forward<F>(f)();
}
/// The same; `work` is a number of elements.
template <class F>
decltype(auto) unlocked(std::int64_t work, F&& f) {
  return unlocked_if(work > kLongWork, std::forward<F>(f));
}

/// Number of elements of an operand.
inline std::int64_t work_of(const Operand& x) noexcept {
  return x.tensor() != nullptr && x.tensor()->defined() ? x.tensor()->numel() : 1;
}
/// An upper bound on the elements that an op of two operands walks: [n, 1] with [1, m] gives n * m.
inline std::int64_t work_of(const Operand& x, const Operand& y) noexcept {
  const std::int64_t a = work_of(x);
  const std::int64_t b = work_of(y);
  if (a > kLongWork || b > kLongWork) return kLongWork + 1;
  return a > 1 && b > 1 ? a * b : a + b;
}

}  // namespace baregrad::python

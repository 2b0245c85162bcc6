// Calls into the engine: without the interpreter's lock where they are long.
#pragma once

#include <cstdint>
#include <utility>

#include <nanobind/nanobind.h>

#include "baregrad/ops.h"

namespace baregrad::python {

/// Elements beyond which an op takes microseconds: giving the lock away and taking it back costs
/// some 50 ns, which is then nothing.
inline constexpr std::int64_t kLongWork = 4096;

/// Without the lock for the length of a scope. Use it instead of nanobind's: a thread that comes
/// back when the interpreter is going away waits for the end of the process. Python up to 3.13
/// would end the thread in the middle of C++, which ends the process with an abort.
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
  /// In the child of a fork.
  static void forget_others() noexcept;
  /// Whether another thread is in such a scope: it may be reading any tensor.
  static bool others_inside() noexcept { return inside_ != own_inside_; }

 private:
  friend class Waiting;
  static void come_back(PyThreadState* state) noexcept;
  /// Until nobody waits for all to be out.
  static void let_pass() noexcept;

  // All are changed and read with the lock held.
  static inline std::int64_t inside_ = 0;
  static inline std::int64_t waiting_ = 0;  // threads that wait for all to be out
  static inline thread_local std::int64_t own_inside_ = 0;
  PyThreadState* state_ = nullptr;
};

/// Before all handles of a tensor get other elements: lets the calls that other threads have begun
/// end. Throws ValueError, in the name of `who`, where they take longer than four seconds.
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

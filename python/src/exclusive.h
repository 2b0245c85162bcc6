// Training objects that several Python threads may use at once: a mutex gives each call exclusive
// access.
#pragma once

#include <mutex>
#include <utility>

#include "bindings.h"
#include "call.h"

namespace baregrad::python {

struct Exclusive {
  // Recursive: a schedule that is a Python function may call the object again.
  std::recursive_mutex mutex;
};

/// Calls f without the interpreter's lock and with the object's mutex. The lock is released first:
/// a thread must not wait for the object while the thread that has it needs the interpreter.
template <class F>
decltype(auto) exclusively(Exclusive& object, F&& f) {
  const LockReleased unlocked;
  const std::lock_guard lock(object.mutex);
  return std::forward<F>(f)();
}

}  // namespace baregrad::python

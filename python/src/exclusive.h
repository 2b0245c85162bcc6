// Objects of training that several Python threads may use at once: who works on one has it alone.
#pragma once

#include <mutex>
#include <utility>

#include "bindings.h"
#include "call.h"

namespace baregrad::python {

struct Exclusive {
  // Recursive: a schedule made of a Python function calls it in here.
  std::recursive_mutex mutex;
};

/// f() without the interpreter's lock, and with that of the object. In this order: nobody may wait
/// for an object while others need the interpreter to be done with it.
template <class F>
decltype(auto) exclusively(Exclusive& object, F&& f) {
  const LockReleased unlocked;
  const std::lock_guard lock(object.mutex);
  return std::forward<F>(f)();
}

}  // namespace baregrad::python

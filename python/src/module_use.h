// Modules that one thread calls without the interpreter's lock while another changes them.
//
// A change (a parameter, buffer or child that is assigned, added or removed) waits until no other
// thread reads modules without the lock; who wants to read them waits until the change is done. A
// thread that comes back to Python code in the middle of a call, for a hook say, does not count as
// reading meanwhile: changes go on, and the C++ side looks at its children anew afterwards. Nobody
// waits while holding the interpreter's lock.
#pragma once

#include <utility>

#include <nanobind/nanobind.h>

#include "call.h"

namespace baregrad::python {

/// Reading modules. Made without the interpreter's lock.
class ModuleUse {
 public:
  ModuleUse() noexcept;
  ~ModuleUse();
  ModuleUse(const ModuleUse&) = delete;
  ModuleUse& operator=(const ModuleUse&) = delete;
};

/// Within a use: Python code runs. Made and dropped without the interpreter's lock.
class ModulePause {
 public:
  ModulePause() noexcept;
  ~ModulePause();
  ModulePause(const ModulePause&) = delete;
  ModulePause& operator=(const ModulePause&) = delete;

 private:
  int paused_;
};

/// The interpreter's lock, taken by code that runs without it or may run with it.
class LockTaken {
 private:
  ModulePause pause_;  // first: dropped after the lock
  nanobind::gil_scoped_acquire lock_;
};

/// Changing modules. Made with the interpreter's lock, which is given away while it waits: look
/// things up afterwards.
class ModuleChange {
 public:
  ModuleChange() noexcept;
  ~ModuleChange();
  ModuleChange(const ModuleChange&) = delete;
  ModuleChange& operator=(const ModuleChange&) = delete;

 private:
  int paused_ = 0;
};

/// f(), which reads modules; without the interpreter's lock where it takes long.
template <class F>
decltype(auto) module_unlocked_if(bool is_long, F&& f) {
  if (!is_long) return std::forward<F>(f)();
  const LockReleased release;
  const ModuleUse use;
  return std::forward<F>(f)();
}

}  // namespace baregrad::python

// Lets one thread call modules without the interpreter's lock while another changes them.
//
// A change (a parameter, buffer or child is assigned, added or removed) waits until no other thread
// reads modules without the lock. A thread that wants to read them waits until the change is done.
// A call that returns to Python code, for a hook for example, does not count as reading during that
// time: changes may proceed, and the C++ code reads its children again afterwards. No thread waits
// while it holds the interpreter's lock.
#pragma once

#include <utility>

#include <nanobind/nanobind.h>

#include "call.h"

namespace baregrad::python {

/// A thread reads modules. Constructed without the interpreter's lock.
class ModuleUse {
 public:
  ModuleUse() noexcept;
  ~ModuleUse();
  ModuleUse(const ModuleUse&) = delete;
  ModuleUse& operator=(const ModuleUse&) = delete;
};

/// Python code runs within a use. Constructed and destroyed without the interpreter's lock.
class ModulePause {
 public:
  ModulePause() noexcept;
  ~ModulePause();
  ModulePause(const ModulePause&) = delete;
  ModulePause& operator=(const ModulePause&) = delete;

 private:
  int paused_;
};

/// Takes the interpreter's lock, in code that may run with or without it.
class LockTaken {
 private:
  ModulePause pause_;  // first member: destroyed after the lock
  nanobind::gil_scoped_acquire lock_;
};

/// A thread changes modules. Constructed with the interpreter's lock, which is released while it
/// waits: look objects up after construction.
class ModuleChange {
 public:
  ModuleChange() noexcept;
  ~ModuleChange();
  ModuleChange(const ModuleChange&) = delete;
  ModuleChange& operator=(const ModuleChange&) = delete;

 private:
  int paused_ = 0;
};

/// Calls f, which reads modules. A long f runs without the interpreter's lock.
template <class F>
decltype(auto) module_unlocked_if(bool is_long, F&& f) {
  if (!is_long) return std::forward<F>(f)();
  const LockReleased release;
  const ModuleUse use;
  return std::forward<F>(f)();
}

}  // namespace baregrad::python

// Objects of the process that are never destroyed, and that a fork finds whole.
//
// A function-local static has a lock: a fork while another thread makes the object leaves the lock
// closed in the child for ever. So no object of the library has one; tests/tools/check_guards.py
// looks for them in the compiled objects.
#pragma once

#include <atomic>

namespace baregrad {

/// A T made at compile time: `constinit Eternal<T> g;`. Its destructor never runs.
template <class T>
union Eternal {
  constexpr Eternal() : value() {}
  constexpr ~Eternal() {}  // NOLINT(modernize-use-equals-default): of T, it would be deleted
  Eternal(const Eternal&) = delete;
  Eternal& operator=(const Eternal&) = delete;

  T value;
};

/// A T made at the first use, for what the compiler cannot make. There is no lock: of several
/// threads that come first each makes one, and all but one are deleted again. What the constructor
/// of T does beyond its own memory, its destructor must undo.
template <class T>
class MadeOnce {
 public:
  /// `make` gives a T* from new.
  template <class Make>
  T& get(Make make) {
    T* known = object_.load(std::memory_order_acquire);
    if (known != nullptr) [[likely]]
      return *known;
    T* fresh = make();
    if (object_.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) return *fresh;
    delete fresh;
    return *known;
  }
  T& get() {
    return get([] { return new T; });
  }

 private:
  std::atomic<T*> object_{nullptr};
};

}  // namespace baregrad

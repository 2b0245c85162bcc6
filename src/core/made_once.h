// Process-wide objects that are never destroyed, and are valid after a fork.
//
// A function-local static has a lock: a fork while another thread initialises the object leaves the
// lock closed in the child for ever. So the library has no such static; tests/tools/check_guards.py
// looks for them in the compiled objects.
#pragma once

#include <atomic>

namespace baregrad {

/// A T that is initialised at compile time: `constinit Eternal<T> g;`. Its destructor never runs.
template <class T>
union Eternal {
  constexpr Eternal() : value() {}
  constexpr ~Eternal() {}  // NOLINT(modernize-use-equals-default): a defaulted one would be deleted
  Eternal(const Eternal&) = delete;
  Eternal& operator=(const Eternal&) = delete;

  T value;
};

/// A T that is created at the first use, for types without a constexpr constructor. There is no
/// lock: if several threads come first, each creates one, and all but one are deleted again. The
/// destructor of T must undo every side effect of its constructor.
template <class T>
class MadeOnce {
 public:
  /// `make` returns a T* from new.
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

// An object of each thread that is asked for by code which may run after the thread's farewell.
#pragma once

#include <new>

#include "core/fast_tls.h"

namespace baregrad {

/// A T of each thread, made at the first call and gone when the thread ends. A thread_local T would
/// be used after its destructor by whoever runs later still: atexit, destructors of other objects.
template <class T>
class PerThread {
 public:
  /// Null once the thread has said farewell, or where there is no memory.
  static T* get() noexcept {
    T* object = object_;
    return object != nullptr ? object : open();
  }

 private:
  struct Farewell {
    Farewell() noexcept {}  // NOLINT(modernize-use-equals-default): registers the destructor
    ~Farewell() {
      closed_ = true;
      T* object = object_;
      object_ = nullptr;
      delete object;
    }
  };
  __attribute__((noinline)) static T* open() noexcept {
    if (closed_) return nullptr;
    static thread_local Farewell farewell;
    static_cast<void>(farewell);
    object_ = new (std::nothrow) T;
    return object_;
  }

  static inline BAREGRAD_FAST_TLS T* object_ = nullptr;
  static inline BAREGRAD_FAST_TLS bool closed_ = false;
};

}  // namespace baregrad

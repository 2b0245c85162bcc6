// An object of each thread, for code that may run during thread exit.
#pragma once

#include <new>

#include "core/fast_tls.h"

namespace baregrad {

/// A T of each thread, made at the first call and destroyed when the thread exits. A thread_local T
/// would be used after its destructor by code that runs later: atexit handlers, destructors of
/// other objects.
template <class T>
class PerThread {
 public:
  /// Null once the object has been destroyed at thread exit, or when there is no memory.
  static T* get() noexcept {
    T* object = object_;
    return object != nullptr ? object : open();
  }

 private:
  struct ExitHandler {
    ExitHandler() noexcept {}  // NOLINT(modernize-use-equals-default): registers the destructor
    ~ExitHandler() {
      closed_ = true;
      T* object = object_;
      object_ = nullptr;
      delete object;
    }
  };
  __attribute__((noinline)) static T* open() noexcept {
    if (closed_) return nullptr;
    static thread_local ExitHandler handler;
    static_cast<void>(handler);
    object_ = new (std::nothrow) T;
    return object_;
  }

  static inline BAREGRAD_FAST_TLS T* object_ = nullptr;
  static inline BAREGRAD_FAST_TLS bool closed_ = false;
};

}  // namespace baregrad

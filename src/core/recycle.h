// Per-thread reuse of small bookkeeping objects: a tensor costs no malloc in the steady state.
#pragma once

#include <cstddef>
#include <new>

#include "core/fast_tls.h"

namespace baregrad {

/// Blocks of sizeof(T), kept by the thread that freed them. T names its own storage, so that each
/// class has a list of one size.
template <class T>
class Recycler {
 public:
#if defined(__SANITIZE_ADDRESS__)
  static constexpr int kMost = 0;  // so that a use after free is seen
#else
  static constexpr int kMost = 64;
#endif

  /// Null when the system has no memory.
  static void* take() noexcept {
    Cache* cache = cache_;
    if (cache != nullptr && cache->count > 0) [[likely]]
      return cache->blocks[--cache->count];
    return ::operator new(sizeof(T), std::nothrow);
  }
  static void give(void* block) noexcept {
    Cache* cache = cache_;
    if (cache == nullptr) [[unlikely]]
      cache = open();
    if (cache != nullptr && cache->count < kMost) [[likely]] {
      cache->blocks[cache->count++] = block;
    } else {
      ::operator delete(block);
    }
  }

 private:
  struct Cache {
    int count = 0;
    void* blocks[kMost + 1];
  };
  /// Takes the thread's blocks along when it ends.
  struct Farewell {
    Farewell() noexcept {}  // NOLINT(modernize-use-equals-default): registers the destructor
    ~Farewell() {
      closed_ = true;
      Cache* cache = cache_;
      cache_ = nullptr;
      while (cache != nullptr && cache->count > 0) ::operator delete(cache->blocks[--cache->count]);
      delete cache;
    }
  };

  /// Null where nothing is kept: objects may be freed after the thread's farewell.
  __attribute__((noinline)) static Cache* open() noexcept {
    if (kMost == 0 || closed_) return nullptr;
    static thread_local Farewell farewell;
    static_cast<void>(farewell);
    cache_ = new (std::nothrow) Cache;
    return cache_;
  }

  static inline BAREGRAD_FAST_TLS Cache* cache_ = nullptr;
  static inline BAREGRAD_FAST_TLS bool closed_ = false;
};

}  // namespace baregrad

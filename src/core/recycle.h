// Per-thread reuse of small bookkeeping objects: in the steady state, a tensor needs no malloc.
#pragma once

#include <cstddef>
#include <new>

#include "core/per_thread.h"

namespace baregrad {

/// Blocks of sizeof(T), kept by the thread that freed them. Each T has a list of its own, with
/// blocks of one size.
template <class T>
class Recycler {
 public:
#if defined(__SANITIZE_ADDRESS__)
  static constexpr int kMost = 0;  // so that a use after free is seen
#else
  static constexpr int kMost = 64;
#endif

  /// Null when there is not enough memory.
  static void* take() noexcept {
    if constexpr (kMost != 0) {
      Cache* cache = PerThread<Cache>::get();
      if (cache != nullptr && cache->count > 0) [[likely]]
        return cache->blocks[--cache->count];
    }
    return ::operator new(sizeof(T), std::nothrow);
  }
  static void give(void* block) noexcept {
    if constexpr (kMost != 0) {
      Cache* cache = PerThread<Cache>::get();
      if (cache != nullptr && cache->count < kMost) [[likely]] {
        cache->blocks[cache->count++] = block;
        return;
      }
    }
    ::operator delete(block);
  }

 private:
  struct Cache {
    int count = 0;
    void* blocks[kMost + 1];

    ~Cache() {
      while (count > 0) ::operator delete(blocks[--count]);
    }
  };
};

}  // namespace baregrad

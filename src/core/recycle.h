// Per-thread reuse of small bookkeeping objects: a tensor costs no malloc in the steady state.
#pragma once

#include <cstddef>
#include <new>

namespace baregrad {

/// Blocks of sizeof(T), kept by the thread that freed them. T names its own storage, so that each
/// class has a list of one size.
template <class T>
class Recycler {
 public:
  /// Null when the system has no memory.
  static void* take() noexcept {
    Cache& cache = cache_;
    if (cache.count > 0) return cache.blocks[--cache.count];
    return ::operator new(sizeof(T), std::nothrow);
  }
  static void give(void* block) noexcept {
    Cache& cache = cache_;
    if (cache.count < kMost && cache.open()) {
      cache.blocks[cache.count++] = block;
    } else {
      ::operator delete(block);
    }
  }

 private:
#if defined(__SANITIZE_ADDRESS__)
  static constexpr int kMost = 0;  // so that a use after free is seen
#else
  static constexpr int kMost = 64;
#endif
  enum class State : unsigned char { Unused, Open, Closed };

  // No destructor of its own: objects freed after the thread's farewell must still find it.
  struct Cache {
    int count;
    State state;
    void* blocks[kMost + 1];

    bool open() noexcept {
      if (state == State::Open) return true;
      if (state == State::Closed) return false;
      static thread_local Farewell farewell;
      static_cast<void>(farewell);
      state = State::Open;
      return true;
    }
  };
  struct Farewell {
    Farewell() noexcept {}  // NOLINT(modernize-use-equals-default): registers the destructor
    ~Farewell() {
      Cache& cache = cache_;
      cache.state = State::Closed;
      while (cache.count > 0) ::operator delete(cache.blocks[--cache.count]);
    }
  };
  __attribute__((tls_model("initial-exec"))) static inline thread_local constinit Cache cache_{};
};

}  // namespace baregrad

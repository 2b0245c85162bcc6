// What the allocators share: memory from the system, sanitizer marks, a small lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <thread>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include "core/fast_tls.h"
#include "core/integer_math.h"

namespace baregrad::detail {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAsan = true;
#else
inline constexpr bool kAsan = false;
#endif

/// The unit of mappings: a multiple of every page size in use.
inline constexpr std::size_t kMapUnit = std::size_t{64} << 10;
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;
/// Larger requests fail at once, so that no rounding below can wrap around.
inline constexpr std::size_t kMaxRequest = std::size_t{1} << 46;

/// From this size on, memory is mapped, to get huge pages. ASan knows only the bounds of malloc's
/// blocks, but ends the process when malloc fails: so only very large blocks are mapped there.
inline constexpr std::size_t kMapThreshold = kAsan ? std::size_t{1} << 30 : kHugePage;

/// Anonymous zeroed pages; null when the system refuses. `length` and `alignment` are multiples of
/// kMapUnit; memory aligned to huge pages asks for them.
void* map_pages(std::size_t length, std::size_t alignment) noexcept;
void unmap_pages(void* pages, std::size_t length) noexcept;

/// The bytes that acquire_block() takes for `bytes` (1 to kMaxRequest).
std::size_t block_footprint(std::size_t bytes) noexcept;
/// An aligned block from malloc's family or from huge pages, by size; null when refused.
void* acquire_block(std::size_t bytes) noexcept;
void release_block(void* block, std::size_t bytes) noexcept;

/// `why` may be empty; it ends the sentence.
[[noreturn]] void throw_out_of_memory(std::string_view allocator, std::size_t requested,
                                      std::size_t live, std::string_view why);

inline void poison([[maybe_unused]] const void* begin, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_POISON_MEMORY_REGION(begin, bytes);
#endif
}
inline void unpoison([[maybe_unused]] const void* begin, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(begin, bytes);
#endif
}

template <class T>
void raise_to(std::atomic<T>& target, T value) noexcept {
  T seen = target.load(std::memory_order_relaxed);
  while (seen < value && !target.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

/// For sections of a few nanoseconds; half the cost of a std::mutex without contention.
class SpinLock {
 public:
  void lock() noexcept {
    for (int spins = 0; locked_.exchange(true, std::memory_order_acquire);) {
      while (locked_.load(std::memory_order_relaxed)) {
        if (++spins > 64) std::this_thread::yield();
      }
    }
  }
  void unlock() noexcept { locked_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> locked_{false};
};

}  // namespace baregrad::detail

// parallel/: the thread pool, parallel_for and nothing else. Knows no tensor.
#pragma once

#include <cstdint>
#include <type_traits>

// Inline functions here are always inlined: a shared out-of-line copy, compiled in a translation
// unit with wider ISA flags, could be the one that the linker keeps.
#define BAREGRAD_ALWAYS_INLINE [[gnu::always_inline]] inline

namespace baregrad::parallel {

/// A borrowed callable: two words, no allocation. The callee must outlive the call.
class ChunkFn {
 public:
  BAREGRAD_ALWAYS_INLINE constexpr ChunkFn() noexcept : object_(nullptr), call_(nullptr) {}
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, ChunkFn>>>
  // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
  BAREGRAD_ALWAYS_INLINE ChunkFn(F&& f) noexcept
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* object, std::int64_t begin, std::int64_t end) {
          (*static_cast<std::remove_reference_t<F>*>(object))(begin, end);
        }) {}
  BAREGRAD_ALWAYS_INLINE void operator()(std::int64_t begin, std::int64_t end) const {
    call_(object_, begin, end);
  }

 private:
  void* object_;
  void (*call_)(void*, std::int64_t, std::int64_t);
};

namespace detail {
void parallel_for_chunks(std::int64_t n, std::int64_t grain, ChunkFn body);
}  // namespace detail

/// Calls body(begin, end) over [0, n) in chunks of exactly `grain` (the last may be shorter). Chunk
/// boundaries depend on n and grain alone, never on the number of threads; each chunk is one call.
///
/// A single chunk is a plain call: it opens no region, so a parallel_for inside it may still use
/// several threads. Several chunks run inline, in order, when the call is nested in a region, when
/// there is one thread, or when another thread's region occupies the pool. Chunks must not wait for
/// each other.
///
/// If several chunks throw, the exception of the one with the lowest index is rethrown on the
/// caller, as in a plain loop, once all running chunks have returned. Chunks after it may be
/// skipped.
///
/// Workers compute with the caller's floating-point control bits (rounding, flush-to-zero).
/// fork() is safe between regions and beside other threads' regions; a child forked from inside a
/// chunk must exec or _exit without leaving the chunk. Throws ValueError if n < 0 or grain < 1.
BAREGRAD_ALWAYS_INLINE void parallel_for(std::int64_t n, std::int64_t grain, ChunkFn body) {
  if (0 < n && n <= grain) {
    body(0, n);
  } else {
    detail::parallel_for_chunks(n, grain, body);
  }
}

/// True inside a chunk of a parallel_for of several chunks, at any number of threads.
bool in_parallel_region() noexcept;

}  // namespace baregrad::parallel

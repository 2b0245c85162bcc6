// Latency: a chain of loads, each of which yields the address of the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lab/timing.h"

namespace baregrad::lab {

/// next[i] of a cycle through all of 0 ... count - 1, drawn uniformly from all such cycles.
std::vector<std::uint32_t> random_cycle(std::uint32_t count, std::uint64_t seed);

enum class PageSize { Small, Huge };

/// One pointer per cache line of `bytes`, in a random order that a prefetcher cannot predict.
class Chase {
 public:
  /// Huge pages are requested, not guaranteed: see `huge_bytes`. Throws std::bad_alloc.
  Chase(std::size_t bytes, PageSize pages, std::uint64_t seed);
  ~Chase();
  Chase(const Chase&) = delete;
  Chase& operator=(const Chase&) = delete;

  /// Nanoseconds per load, in samples of at least hundreds of loads, for `seconds`.
  Timing measure(double seconds);

 private:
  struct alignas(64) Line {
    const Line* next;
  };
  void follow(std::int64_t loads);

  void* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::uint32_t lines_ = 0;
  const Line* at_ = nullptr;
};

/// Bytes of this process on huge pages; 0 if the kernel does not report it.
std::size_t huge_bytes();

}  // namespace baregrad::lab

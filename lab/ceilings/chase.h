// Latency: a chain of loads in which each says where the next one is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lab/timing.h"

namespace baregrad::lab {

/// next[i] for one cycle through all of 0 ... count - 1, drawn evenly from all such cycles.
std::vector<std::uint32_t> random_cycle(std::uint32_t count, std::uint64_t seed);

enum class PageSize { Small, Huge };

/// One pointer per cache line of `bytes`, in a random order that no prefetcher can guess.
class Chase {
 public:
  /// Huge pages are asked for, not promised: see `huge_bytes`. Throws std::bad_alloc.
  Chase(std::size_t bytes, PageSize pages, std::uint64_t seed);
  ~Chase();
  Chase(const Chase&) = delete;
  Chase& operator=(const Chase&) = delete;

  /// Nanoseconds per load, in samples of hundreds of loads or more, for so long.
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

/// How much of this process's memory lies in huge pages; 0 where the kernel does not say.
std::size_t huge_bytes();

}  // namespace baregrad::lab

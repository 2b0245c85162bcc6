// Observing the workers of the pool, for the profiler. Without an observer, a region costs one load
// more.
#pragma once

#include <cstdint>

namespace baregrad::parallel {

struct Observer {
  /// Called by the caller of a region of several threads: what the region computes. Null: not
  /// observed.
  const char* (*region)() noexcept;
  std::uint64_t (*now)() noexcept;
  /// Called by a worker, with its number, when it has done its part of such a region.
  void (*worked)(const char* region, int worker, std::uint64_t since) noexcept;
};

/// Null: no observer. An observer must live as long as the process.
void set_observer(const Observer* observer) noexcept;

}  // namespace baregrad::parallel

// Who wants to know what the pool's workers do: the profiler. Without one, a region pays a load.
#pragma once

#include <cstdint>

namespace baregrad::parallel {

struct Observer {
  /// Asked in the caller of a region of several threads: what it computes. Null: of no interest.
  const char* (*region)() noexcept;
  std::uint64_t (*now)() noexcept;
  /// Told in a worker, by its number, when it has done its part of such a region.
  void (*worked)(const char* region, int worker, std::uint64_t since) noexcept;
};

/// Null: nobody. An observer must live as long as the process.
void set_observer(const Observer* observer) noexcept;

}  // namespace baregrad::parallel

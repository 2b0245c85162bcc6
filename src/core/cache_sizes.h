// The caches of this machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace baregrad {

enum class CacheKind : std::uint8_t { Data, Instruction, Unified };

struct Cache {
  int level = 0;
  CacheKind kind = CacheKind::Unified;
  std::size_t bytes = 0;
  int shared_by = 0;  ///< logical CPUs that share one; 0 when unknown
};

/// The caches of the first CPU, nearest first, read from the system once; empty where it does not
/// list them.
std::span<const Cache> caches() noexcept;

/// Sizes of data and unified caches.
struct CacheSizes {
  std::size_t l1;
  std::size_t l2;
  std::size_t l3;
};
inline constexpr CacheSizes kUsualCacheSizes{32UL << 10, 512UL << 10, 16UL << 20};

/// Typical sizes where the system does not list them.
const CacheSizes& cache_sizes() noexcept;

namespace detail {

/// Reads a folder with the layout of /sys/devices/system/cpu/cpu0/cache; returns how many of
/// `found` were filled.
std::size_t read_caches(const char* folder, std::span<Cache> found) noexcept;

}  // namespace detail
}  // namespace baregrad

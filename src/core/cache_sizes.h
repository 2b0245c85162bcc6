// Which caches this machine has.
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

/// Those of the first CPU, nearest first, asked of the system once; empty where it does not say.
std::span<const Cache> caches() noexcept;

/// Of data and unified caches.
struct CacheSizes {
  std::size_t l1;
  std::size_t l2;
  std::size_t l3;
};
inline constexpr CacheSizes kUsualCacheSizes{32UL << 10, 512UL << 10, 16UL << 20};

/// Usual sizes where the system does not say.
const CacheSizes& cache_sizes() noexcept;

namespace detail {

/// Reads a folder as /sys/devices/system/cpu/cpu0/cache is one; how many of `found` were filled.
std::size_t read_caches(const char* folder, std::span<Cache> found) noexcept;

}  // namespace detail
}  // namespace baregrad

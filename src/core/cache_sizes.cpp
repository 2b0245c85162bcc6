// Cache sizes as the C library finds them by asking the CPU, which containers cannot hide.
#include "core/cache_sizes.h"

#include <unistd.h>

namespace baregrad {

namespace {

std::size_t size_or(int name, std::size_t usual) noexcept {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : usual;
}

}  // namespace

const CacheSizes& cache_sizes() noexcept {
  constexpr std::size_t kKiB = 1024;
#ifdef _SC_LEVEL1_DCACHE_SIZE
  static const CacheSizes sizes{size_or(_SC_LEVEL1_DCACHE_SIZE, 32 * kKiB),
                                size_or(_SC_LEVEL2_CACHE_SIZE, 512 * kKiB),
                                size_or(_SC_LEVEL3_CACHE_SIZE, 16 * kKiB * kKiB)};
#else
  static const CacheSizes sizes{32 * kKiB, 512 * kKiB, 16 * kKiB * kKiB};
#endif
  return sizes;
}

}  // namespace baregrad

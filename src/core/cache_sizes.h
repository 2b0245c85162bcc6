// How large the data caches of this machine are.
#pragma once

#include <cstddef>

namespace baregrad {

struct CacheSizes {
  std::size_t l1;
  std::size_t l2;
  std::size_t l3;
};

/// Asked of the system once; usual sizes where it does not say.
const CacheSizes& cache_sizes() noexcept;

}  // namespace baregrad

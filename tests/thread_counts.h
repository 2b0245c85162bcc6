// Thread counts for tests whose results must not depend on it.
#pragma once

#include <vector>

#include "baregrad/parallel.h"

namespace baregrad {

/// Counts besides one. Sanitizers check memory accesses, which does not need every count: a count
/// that divides nothing evenly, and for ThreadSanitizer the count it was started with.
inline std::vector<int> several_threads() {
#if defined(__SANITIZE_THREAD__)
  static const int started_with = get_num_threads();
  return {started_with};
#elif defined(__SANITIZE_ADDRESS__)
  return {3};
#else
  return {2, 3, 4, 8};
#endif
}

}  // namespace baregrad

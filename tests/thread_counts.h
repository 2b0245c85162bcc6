// How many threads tests ask for where the number must not matter.
#pragma once

#include <vector>

#include "baregrad/parallel.h"

namespace baregrad {

/// Beside one. Sanitizers look at memory and at who touches it, which does not take every number:
/// one that divides nothing evenly, and for ThreadSanitizer the one it was started with.
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

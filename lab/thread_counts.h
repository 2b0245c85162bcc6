// How many threads experiments try.
#pragma once

#include <vector>

namespace baregrad::lab {

/// 1, 2, 3, 4, 6, 8, 12, 16, ... and `most`: every count of a small machine, two a doubling of a
/// large one.
std::vector<int> thread_counts(int most);

}  // namespace baregrad::lab

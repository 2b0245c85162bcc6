// The thread counts that experiments measure.
#pragma once

#include <vector>

namespace baregrad::lab {

/// 1, 2, 3, 4, 6, 8, 12, 16, ... and `most`: every count on a small machine, two per doubling on a
/// large one.
std::vector<int> thread_counts(int most);

}  // namespace baregrad::lab

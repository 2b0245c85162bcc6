// Powers of two and the numbers midway between them.
#include "lab/thread_counts.h"

namespace baregrad::lab {

std::vector<int> thread_counts(int most) {
  std::vector<int> counts;
  for (int power = 1; power < most; power *= 2) {
    counts.push_back(power);
    if (power > 1 && power + power / 2 < most) counts.push_back(power + power / 2);
  }
  counts.push_back(most);
  return counts;
}

}  // namespace baregrad::lab

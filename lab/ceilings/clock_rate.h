// The clock, as far as a program can see it: cycles are not readable everywhere, but an addition
// that waits for the one before takes one.
#pragma once

#include <vector>

namespace baregrad::lab {

/// Dependent additions of integers per nanosecond, which is GHz on every processor that adds in one
/// cycle; one number per sample of a fifth of a millisecond, for so long.
std::vector<double> additions_per_ns(double seconds);

}  // namespace baregrad::lab

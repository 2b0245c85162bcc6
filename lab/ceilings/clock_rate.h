// The clock rate as a program can observe it. Cycles are not readable everywhere, but each addition
// of a dependent chain takes one cycle.
#pragma once

#include <vector>

namespace baregrad::lab {

/// Dependent integer additions per nanosecond, which is the clock in GHz on every processor that
/// adds in one cycle. One number per sample of a fifth of a millisecond, for `seconds`.
std::vector<double> additions_per_ns(double seconds);

}  // namespace baregrad::lab

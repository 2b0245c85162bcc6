// The CPU backend's execution of op calls: over plain views, whatever their layouts and dtypes.
#pragma once

#include "backends/call.h"

namespace baregrad::kernels {

/// Looks at values that an op is not defined for (indices out of range, integer division by zero,
/// classes, probabilities) before anything is written. Throws IndexError or ValueError.
void check_values(const Call& call);

/// Computes the outputs. Shapes and dtypes were inferred, values checked.
void execute(const Call& call);

}  // namespace baregrad::kernels

// Reductions and arg-reductions of strided views. Callers have checked shapes, dtypes and axes.
#pragma once

#include <cstdint>

#include "backends/cpu/abi.h"

namespace baregrad::kernels {

/// Reduces the axes whose bits are set. `out` is contiguous and has x's shape with those axes of
/// size 1. Its dtype is the caller's choice: elements are converted to it (a bool sum is `any`, a
/// bool product `all`), but nothing is rounded before the end. A reduction of no elements gives the
/// identity, and NaN for mean, var and std; amax and amin have no identity and must not be called
/// then. `correction` is for var and std: their divisor is max(n - correction, 0).
void reduce(OpId op, const View& x, std::uint32_t axes_mask, const View& out, double correction);

/// Position of the first best along `axis`, or in row-major order over all when axis is -1. `out`
/// is int64, contiguous, one element for each kept position; the axis is not empty.
void argreduce(OpId op, const View& x, int axis, const View& out);

}  // namespace baregrad::kernels

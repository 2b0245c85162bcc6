// Cumulative sums, products and maxima along an axis of a strided view.
#pragma once

#include "backends/cpu/abi.h"

namespace baregrad::kernels {

/// op: cumulative_sum, cumulative_prod or cumulative_max. `out` is contiguous and has x's shape;
/// its dtype is the caller's choice. Floats accumulate in float64, integers in 64 bits with
/// wrapping; after a NaN all results are NaN.
void scan(OpId op, const View& x, int axis, const View& out);

}  // namespace baregrad::kernels

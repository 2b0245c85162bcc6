// softmax, log_softmax and logsumexp over axes of a strided view.
#pragma once

#include <cstdint>

#include "backends/cpu/abi.h"

namespace baregrad::kernels {

/// op: softmax or log_softmax. `out` is floating, contiguous and of x's shape. Rows with +inf or
/// NaN, or with nothing but -inf, become NaN.
void softmax_like(OpId op, const View& x, int axis, const View& out);

/// Reduces the axes whose bits are set; `out` is floating and contiguous, with those axes of size
/// 1. -inf where there are no elements, or only -inf.
void logsumexp(const View& x, std::uint32_t axes_mask, const View& out);

}  // namespace baregrad::kernels

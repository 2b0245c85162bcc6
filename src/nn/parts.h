// Splits of a tensor whose gradients are joined in one pass.
#pragma once

#include <cstdint>
#include <vector>

#include "baregrad/tensor.h"

namespace baregrad::nn {

// All parts are used. Their gradients are joined in one pass. With plain views, each gradient would
// be a tensor of the full size, and all of them would be added.

/// The slices of the first axis.
std::vector<Tensor> steps_of(const Tensor& x);
/// Equal parts of the last axis.
std::vector<Tensor> parts_of(const Tensor& x, std::int64_t count);

}  // namespace baregrad::nn

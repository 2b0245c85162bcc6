// Parts of a tensor whose gradients come back as one.
#pragma once

#include <cstdint>
#include <vector>

#include "baregrad/tensor.h"

namespace baregrad::nn {

// All parts are used: the gradient of the whole is put together from theirs in one pass, where
// those of plain views would each be a tensor of the whole's size, to be added up.

/// The slices of the first axis.
std::vector<Tensor> steps_of(const Tensor& x);
/// Equal parts of the last axis.
std::vector<Tensor> parts_of(const Tensor& x, std::int64_t count);

}  // namespace baregrad::nn

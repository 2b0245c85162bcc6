// What the fused step kernels see of a tensor.
#pragma once

#include <string>

#include "backends/cpu/abi.h"
#include "baregrad/tensor.h"

namespace baregrad::optim {

/// Valid while the tensor lives.
inline kernels::View view_of(const Tensor& t) noexcept {
  return {t.data_ptr(), t.dtype(), t.ndim(), t.shape().data(), t.strides().data()};
}

/// Of what is kept beside a parameter: half precision is too coarse to add up in.
inline DType state_dtype(DType parameter) noexcept { return kernels::compute_dtype(parameter); }

/// Throws unless it can be updated in place by an optimizer: see Optimizer::add.
void check_parameter(const Tensor& t, std::size_t index, const char* who);

}  // namespace baregrad::optim

// Tensors as views for the fused step kernels.
#pragma once

#include <string>

#include "backends/cpu/abi.h"
#include "baregrad/tensor.h"

namespace baregrad::optim {

/// Valid while the tensor lives.
inline kernels::View view_of(const Tensor& t) noexcept {
  return {t.data_ptr(), t.dtype(), t.ndim(), t.shape().data(), t.strides().data()};
}

/// The dtype of a parameter's state. Half precision is too coarse for sums.
inline DType state_dtype(DType parameter) noexcept { return kernels::compute_dtype(parameter); }

/// Throws unless an optimizer can update the tensor in place: see Optimizer::add.
void check_parameter(const Tensor& t, std::size_t index, const char* who);

}  // namespace baregrad::optim

// What is kept beside a parameter.
#pragma once

#include <string>

#include "backends/cpu/abi.h"
#include "baregrad/ops.h"

namespace baregrad::optim {

/// The dtype of a parameter's state. Half precision is too coarse for sums.
inline DType state_dtype(DType parameter) noexcept { return kernels::compute_dtype(parameter); }

/// Whether it has the dtype and the device of a parameter's state.
inline bool lies_beside(const Tensor& state, const Tensor& parameter) {
  return state.dtype() == state_dtype(parameter.dtype()) && state.device() == parameter.device();
}
/// A copy of a state with the dtype and on the device for a parameter.
inline Tensor beside(const Tensor& state, const Tensor& parameter) {
  const Device device = parameter.device();
  return to_device(astype(state, state_dtype(parameter.dtype()), state.device() == device), device);
}

/// Throws unless an optimizer can update the tensor in place: see Optimizer::add.
void check_parameter(const Tensor& t, std::size_t index, const char* who);

}  // namespace baregrad::optim

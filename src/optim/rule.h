// The description of one optimizer: its options, the state it keeps, and the numbers of a step.
#pragma once

#include <cstdint>
#include <span>

#include "backends/cpu/irregular/step.h"
#include "baregrad/optim.h"
#include "optim/options.h"

namespace baregrad::optim {

/// The most state tensors per parameter: the operands of a step kernel but parameter and gradient.
inline constexpr std::size_t kMaxStates = kernels::kMaxStepOperands - 2;

struct OptimizerRule {
  /// The kernel for given option values, and the states that it takes (bit k: states[k]).
  struct Choice {
    kernels::StepRule kernel;
    unsigned states;
  };

  const char* name;
  std::span<const OptionRow> options;
  /// Names of the state tensors of a parameter, in the order of the kernel's operands.
  std::span<const char* const> states;
  // The functions take the values of the options, in their order.
  Choice (*choose)(const double* values);
  /// The numbers that the kernel takes for a parameter's t-th step; t starts at 1.
  kernels::StepNumbers (*prepare)(const double* values, double t);
  /// The initial value of the states' elements.
  double (*initial)(const double* values);
  /// The problem with a combination of values that are valid one by one; null without one.
  const char* (*problem)(const double* values);
};

}  // namespace baregrad::optim

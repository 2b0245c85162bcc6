// What tells one optimizer from another: its options, the tensors it keeps and two functions.
#pragma once

#include <cstdint>
#include <span>

#include "backends/cpu/irregular/step.h"
#include "baregrad/optim.h"
#include "optim/options.h"

namespace baregrad::optim {

/// What can be kept beside a parameter: at most the operands that a step has beyond two.
inline constexpr std::size_t kMaxStates = kernels::kMaxStepOperands - 2;

struct OptimizerRule {
  /// The kernel for some options, and which of the states it takes (bit k: states[k]).
  struct Choice {
    kernels::StepRule kernel;
    unsigned states;
  };

  const char* name;
  std::span<const OptionRow> options;
  /// Names of the tensors kept per parameter, in the kernels' order.
  std::span<const char* const> states;
  // The functions take the values of the options, in their order.
  Choice (*choose)(const double* values);
  /// The numbers of a parameter's t-th step, t from 1.
  kernels::StepNumbers (*prepare)(const double* values, double t);
  /// The first value of the states' elements.
  double (*initial)(const double* values);
  /// What is wrong with values that are right one by one; null when nothing is.
  const char* (*problem)(const double* values);
};

}  // namespace baregrad::optim

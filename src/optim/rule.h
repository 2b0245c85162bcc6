// What tells one optimizer from another: a row of names and two functions.
#pragma once

#include <cstdint>
#include <span>

#include "backends/cpu/irregular/step.h"
#include "baregrad/optim.h"

namespace baregrad::optim {

/// What can be kept beside a parameter: at most the operands that a step has beyond two.
inline constexpr std::size_t kMaxStates = kernels::kMaxStepOperands - 2;

struct OptimizerRule {
  struct Setting {
    const char* name;
    double least;
    double most;
    bool below = false;  // `most` itself is too much
  };
  /// The kernel for some settings, and which of the states it takes (bit k: states[k]).
  struct Choice {
    kernels::StepRule kernel;
    unsigned states;
  };

  const char* name;
  std::span<const Setting> settings;
  /// Names of the tensors kept per parameter, in the kernels' order.
  std::span<const char* const> states;
  Choice (*choose)(const double* settings);
  /// The numbers of a parameter's t-th step, t from 1.
  kernels::StepNumbers (*prepare)(const double* settings, double t);
  /// What the states begin with; null: zeros.
  double (*initial)(const double* settings) = nullptr;
  /// What is wrong with settings that are right one by one; null: nothing can be.
  const char* (*problem)(const double* settings) = nullptr;
};

}  // namespace baregrad::optim

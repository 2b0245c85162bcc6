// The Python objects of optimizers.
#pragma once

#include "baregrad/optim.h"
#include "exclusive.h"

namespace baregrad::python {

/// The base class of the Python objects of all optimizers.
struct OptimizerHandle : Exclusive {
  virtual ~OptimizerHandle() = default;
  virtual optim::Optimizer& get() noexcept = 0;
};

void bind_schedules(nb::module_& optim);

}  // namespace baregrad::python

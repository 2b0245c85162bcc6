// Optimizers as Python holds them.
#pragma once

#include "baregrad/optim.h"
#include "exclusive.h"

namespace baregrad::python {

/// An optimizer of any kind, as Python holds it.
struct OptimizerHandle : Exclusive {
  virtual ~OptimizerHandle() = default;
  virtual optim::Optimizer& get() noexcept = 0;
};

void bind_schedules(nb::module_& optim);

}  // namespace baregrad::python

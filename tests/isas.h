// The instruction sets for kernel tests.
#pragma once

#include <vector>

#include "backends/cpu/table.h"

namespace baregrad::test {

/// Those of this machine, and the reference.
inline std::vector<kernels::Isa> all_isas() {
  std::vector<kernels::Isa> isas = kernels::available_isas();
  isas.push_back(kernels::Isa::Reference);
  return isas;
}

}  // namespace baregrad::test

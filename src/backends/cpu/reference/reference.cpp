// Puts all reference kernels into the table.
#include "backends/cpu/reference/reference.h"

namespace baregrad::kernels {

void register_reference(KernelTable& table) {
  reference::register_elementwise(table);
  reference::register_casts(table);
  reference::register_steps(table);
  register_reference_reductions(table);
  register_reference_conv(table);
  register_reference_norm(table);
}

}  // namespace baregrad::kernels

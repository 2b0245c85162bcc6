// Comparisons, T, T -> bool.
#include "backends/cpu/simd/families.h"
#include "backends/cpu/simd/loops.h"

namespace baregrad::kernels::HWY_NAMESPACE {

void register_comparisons(KernelTable& table) {
#define BG_COMPARE(name, rule, doc)  \
  for_each_compute_type<Rule::rule>( \
      [&table]<class T>() { entry<T>(table, OpId::name) = compare_kernel<functors::name, T>(); });
#include "ops/ops.def"
}

}  // namespace baregrad::kernels::HWY_NAMESPACE

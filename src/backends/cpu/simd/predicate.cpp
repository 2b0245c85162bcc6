// Predicates, T -> bool.
#include "backends/cpu/simd/families.h"
#include "backends/cpu/simd/loops.h"

namespace baregrad::kernels::HWY_NAMESPACE {

void register_predicates(KernelTable& table) {
#define BG_PREDICATE(name, rule, doc)                                    \
  for_each_compute_type<Rule::rule>([&table]<class T>() {                \
    entry<T>(table, OpId::name) = predicate_kernel<functors::name, T>(); \
  });
#include "ops/ops.def"
}

}  // namespace baregrad::kernels::HWY_NAMESPACE

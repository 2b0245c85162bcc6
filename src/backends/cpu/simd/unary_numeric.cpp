// Unary ops that integers have too.
#include "backends/cpu/simd/families.h"
#include "backends/cpu/simd/loops.h"

namespace baregrad::kernels::HWY_NAMESPACE {

void register_unary_numeric(KernelTable& table) {
#define BG_UNARY(name, rule, doc)                                                                  \
  if constexpr (Rule::rule != Rule::Floating) {                                                    \
    for_each_compute_type<Rule::rule>(                                                             \
        [&table]<class T>() { entry<T>(table, OpId::name) = unary_kernel<functors::name, T>(); }); \
  }
#include "ops/ops.def"
}

}  // namespace baregrad::kernels::HWY_NAMESPACE

// Which kernel runs each irregular op; astype and the plain copy, which the walker does itself.
#include "backends/cpu/irregular/irregular.h"

#include "backends/cpu/walkers/elementwise.h"
#include "backends/cpu/walkers/reduce.h"
#include "backends/cpu/walkers/rows.h"
#include "backends/cpu/walkers/scan.h"

namespace baregrad::kernels {

void astype_kernel(const IrregularCall& call) { copy(call.in[0], call.out[0]); }
void contiguous_copy_kernel(const IrregularCall& call) { copy(call.in[0], call.out[0]); }

void cumulative_sum_kernel(const IrregularCall& call) {
  scan(OpId::cumulative_sum, call.in[0], call.attrs.axis, call.out[0]);
}
void cumulative_prod_kernel(const IrregularCall& call) {
  scan(OpId::cumulative_prod, call.in[0], call.attrs.axis, call.out[0]);
}
void cumulative_max_kernel(const IrregularCall& call) {
  scan(OpId::cumulative_max, call.in[0], call.attrs.axis, call.out[0]);
}
void softmax_kernel(const IrregularCall& call) {
  softmax_like(OpId::softmax, call.in[0], call.attrs.axis, call.out[0]);
}
void log_softmax_kernel(const IrregularCall& call) {
  softmax_like(OpId::log_softmax, call.in[0], call.attrs.axis, call.out[0]);
}
void logsumexp_kernel(const IrregularCall& call) {
  logsumexp(call.in[0], call.attrs.axes, call.out[0]);
}

void register_irregular(KernelTable& table) {
#define BG_IRREGULAR(name, rule, doc) table.irregular[static_cast<int>(OpId::name)] = name##_kernel;
#include "ops/ops.def"
}

}  // namespace baregrad::kernels

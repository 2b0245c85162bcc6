// Which kernel runs each irregular op; astype and the plain copy, which the walker does itself.
#include "backends/cpu/irregular/irregular.h"

#include "backends/cpu/walkers/elementwise.h"
#include "backends/cpu/walkers/reduce.h"
#include "backends/cpu/walkers/rows.h"
#include "backends/cpu/walkers/scan.h"

namespace baregrad::kernels {

void astype_kernel(const Call& call) { copy(call.in[0], call.out[0]); }
void to_device_kernel(const Call& call) { copy(call.in[0], call.out[0]); }
void contiguous_copy_kernel(const Call& call) { copy(call.in[0], call.out[0]); }

void cumulative_sum_kernel(const Call& call) {
  scan(OpId::cumulative_sum, call.in[0], call.attrs.as<ScanAttrs>().axis, call.out[0]);
}
void cumulative_prod_kernel(const Call& call) {
  scan(OpId::cumulative_prod, call.in[0], call.attrs.as<ScanAttrs>().axis, call.out[0]);
}
void cumulative_max_kernel(const Call& call) {
  scan(OpId::cumulative_max, call.in[0], call.attrs.as<ScanAttrs>().axis, call.out[0]);
}
void softmax_kernel(const Call& call) {
  softmax_like(OpId::softmax, call.in[0], call.attrs.as<SoftmaxAttrs>().axis, call.out[0]);
}
void log_softmax_kernel(const Call& call) {
  softmax_like(OpId::log_softmax, call.in[0], call.attrs.as<SoftmaxAttrs>().axis, call.out[0]);
}
void logsumexp_kernel(const Call& call) {
  logsumexp(call.in[0], call.attrs.as<LogSumExpAttrs>().axes.bits, call.out[0]);
}

void register_irregular(KernelTable& table) {
#define BG_IRREGULAR(name, attrs, infer, results, doc) \
  table.irregular[static_cast<int>(OpId::name)] = name##_kernel;
#include "ops/ops.def"
}

Inputs inputs_of(OpId op) noexcept {
  switch (op) {
    case OpId::astype:
    case OpId::contiguous_copy:
    case OpId::to_device:
    case OpId::fill:
    case OpId::cumulative_sum:
    case OpId::cumulative_prod:
    case OpId::cumulative_max:
    case OpId::softmax:
    case OpId::log_softmax:
    case OpId::logsumexp:
    case OpId::concat:
    case OpId::roll:
    case OpId::pad:
    case OpId::take:
    case OpId::gather:
    case OpId::scatter:
    case OpId::scatter_add:
    case OpId::index:
    case OpId::index_put:
    case OpId::optimizer_step:
    case OpId::square_sum_of_all:
    case OpId::linalg_cholesky:
    case OpId::linalg_det:
    case OpId::linalg_slogdet:
    case OpId::linalg_inv:
    case OpId::linalg_solve:
    case OpId::linalg_eigh:
    case OpId::linalg_eigvalsh:
    case OpId::linalg_qr:
    case OpId::linalg_svd:
    case OpId::linalg_svdvals:
      return Inputs::Any;
    case OpId::attention:
    case OpId::attention_backward:
      return Inputs::Aligned;
    default:
      return Inputs::Packed;
  }
}

}  // namespace baregrad::kernels

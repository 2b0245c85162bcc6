// astype, clone, contiguous and copy_: the same elements elsewhere or in another dtype.
#include "baregrad/ops.h"
#include "ops/dispatch.h"
#include "ops/irregular.h"

namespace baregrad {

std::vector<OutputSpec> infer_astype(const OpCall& call) {
  return {{call.inputs[0]->shape(), call.attrs.dtype}};
}

std::vector<OutputSpec> infer_contiguous_copy(const OpCall& call) {
  return {{call.inputs[0]->shape(), call.inputs[0]->dtype()}};
}

Tensor astype(const Tensor& x, DType dtype, bool copy) {
  if (!copy && x.defined() && x.dtype() == dtype) return alias(x);
  Attrs attrs;
  attrs.dtype = dtype;
  return run(OpId::astype, {&x}, attrs);
}

Tensor contiguous(const Tensor& x) {
  if (x.defined() && x.is_contiguous()) return x;
  return clone(x);
}

Tensor clone(const Tensor& x) { return run(OpId::contiguous_copy, {&x}); }

const Tensor& copy_(const Tensor& dst, const Tensor& source) {
  if (!dst.defined() || !source.defined()) {
    run_into(OpId::contiguous_copy, {&source}, dst);  // throws, naming what is undefined
  }
  const Tensor fitted = source.shape() == dst.shape() ? source : broadcast_to(source, dst.shape());
  run_into(OpId::contiguous_copy, {&fitted}, dst);
  return dst;
}

}  // namespace baregrad

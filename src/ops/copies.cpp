// astype, clone, contiguous and copy_: the same elements elsewhere or in another dtype.
#include "baregrad/ops.h"
#include "ops/dispatch.h"
#include "ops/infer.h"
#include "ops/internal_ops.h"
#include "ops/positions.h"

namespace baregrad {

std::vector<OutputSpec> infer_astype(const OpCall& call) {
  return {{call.inputs[0]->shape(), call.attrs.as<CastAttrs>().dtype}};
}

std::vector<OutputSpec> infer_contiguous_copy(const OpCall& call) {
  return {{call.inputs[0]->shape(), call.inputs[0]->dtype()}};
}

Tensor astype(const Tensor& x, DType dtype, bool copy) {
  if (!copy && x.defined() && x.dtype() == dtype) return alias(x);
  return run(OpId::astype, {&x}, CastAttrs{dtype});
}

Tensor converted(const Tensor& x, DType dtype, const char* who) {
  if (x.dtype() == dtype) return x;
  return run(OpId::astype, {&x}, CastAttrs{dtype}, who);
}

std::vector<OutputSpec> infer_to_device(const OpCall& call) {
  return {{call.inputs[0]->shape(), call.inputs[0]->dtype()}};
}

Tensor to_device(const Tensor& x, Device device) {
  require_defined(x, "x", "to_device");
  if (x.device() == device) return x;
  return run(OpId::to_device, {&x}, ToDeviceAttrs{device, x.device()});
}

Tensor contiguous(const Tensor& x) {
  if (x.defined() && x.is_contiguous()) return x;
  return run(OpId::contiguous_copy, {&x}, {}, "contiguous");
}

Tensor clone(const Tensor& x) { return run(OpId::contiguous_copy, {&x}, {}, "clone"); }

const Tensor& copy_(const Tensor& dst, const Tensor& source) {
  constexpr const char* kWho = "copy_";
  require_defined(dst, "the output", kWho);
  require_defined(source, "the source", kWho);
  const Tensor there = to_device(source, dst.device());
  const Tensor fitted =
      there.shape() == dst.shape() ? there : repeated_to(there, dst.shape(), kWho);
  run_into(OpId::contiguous_copy, {&fitted}, dst, {}, kWho);
  return dst;
}

}  // namespace baregrad

// Tensor's methods, on public ops.
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/host.h"
#include "core/message.h"
#include "core/rename.h"

namespace baregrad {

Tensor Tensor::to(DType dtype) const { return astype(*this, dtype, false); }
Tensor Tensor::to(Device device) const {
  return in_name_of("to", [&] { return to_device(*this, device); });
}
Tensor Tensor::cpu() const {
  return in_name_of("cpu", [&] { return to_device(*this, Device()); });
}
Tensor Tensor::contiguous() const { return baregrad::contiguous(*this); }
Tensor Tensor::clone() const { return baregrad::clone(*this); }
Tensor Tensor::reshape(const Dims& shape) const { return baregrad::reshape(*this, shape); }
Tensor Tensor::permute(const Dims& axes) const {
  return in_name_of("permute", [&] { return permute_dims(*this, axes); });
}
Tensor Tensor::transpose(std::int64_t axis0, std::int64_t axis1) const {
  return in_name_of("transpose", [&] { return swapaxes(*this, axis0, axis1); });
}
Tensor Tensor::mT() const { return matrix_transpose(*this); }
Tensor Tensor::expand(const Dims& shape) const { return baregrad::expand(*this, shape); }
Tensor Tensor::operator[](std::int64_t index) const { return select(*this, 0, index); }
Tensor Tensor::index(const std::vector<Index>& indices) const {
  return baregrad::index(*this, indices);
}
const Tensor& Tensor::index_put_(const std::vector<Index>& indices, const Tensor& value) const {
  return baregrad::index_put_(*this, indices, value);
}
const Tensor& Tensor::index_put_(const std::vector<Index>& indices, const Scalar& value) const {
  return baregrad::index_put_(*this, indices, value);
}
Tensor Tensor::index_put(const std::vector<Index>& indices, const Tensor& value) const {
  return baregrad::index_put(*this, indices, value);
}
Tensor Tensor::index_put(const std::vector<Index>& indices, const Scalar& value) const {
  return baregrad::index_put(*this, indices, value);
}
const Tensor& Tensor::copy_(const Tensor& source) const { return baregrad::copy_(*this, source); }
const Tensor& Tensor::fill_(const Scalar& value) const { return baregrad::fill_(*this, value); }

void Tensor::copy_to(void* out) const {
  if (!defined()) throw ValueError("copy_to: the tensor is undefined");
  if (numel() == 0) return;
  baregrad::copy_(from_blob(out, shape(), dtype()), on_host(*this));
}

}  // namespace baregrad

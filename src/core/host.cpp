// Bytes of tensors to and from the host.
#include "core/host.h"

#include <cstring>

#include "baregrad/error.h"
#include "core/device_hooks.h"
#include "core/history.h"
#include "core/message.h"

namespace baregrad {

Tensor on_host(const Tensor& t) {
  const Device device = t.device();
  if (device.is_cpu()) return History::plain(t);
  // The part of the storage between the first and the last element that the layout reaches.
  const auto width = static_cast<std::int64_t>(itemsize(t.dtype()));
  Layout layout = t.layout();
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (int i = 0; i < layout.ndim(); ++i) {
    const std::int64_t span = layout.strides[i] * (layout.shape[i] - 1);
    (span < 0 ? low : high) += span;
  }
  const std::int64_t count = t.numel() == 0 ? 0 : high - low + 1;
  const auto bytes = static_cast<std::size_t>(count * width);
  Ref<Storage> here = Storage::allocate(bytes);
  if (count != 0) {
    const char* from = static_cast<const char*>(t.data_ptr()) + low * width;
    detail::hooks_of(device, "host").copy_to_host(device.index, here->data(), from, bytes);
  }
  layout.offset = -low;
  return Tensor::view_of(std::move(here), t.dtype(), layout, "host");
}

void write_from_host(const Tensor& to, const void* from, std::size_t bytes) {
  if (!to.is_contiguous() || bytes != to.nbytes()) {
    throw ShapeError(message("write_from_host: ", bytes, " bytes do not fill ", describe(to)));
  }
  if (bytes == 0) return;
  const Device device = to.device();
  if (device.is_cpu()) {
    std::memcpy(to.data_ptr(), from, bytes);
  } else {
    detail::hooks_of(device, "host").copy_from_host(device.index, to.data_ptr(), from, bytes);
  }
  to.storage()->bump_version();
}

}  // namespace baregrad

// Foreign arrays as tensors: shared if possible, else copied.
#include "interop_foreign.h"

#include "call.h"
#include "core/checked.h"
#include "core/message.h"

namespace baregrad::python {
namespace {

bool has_whole_strides(const ForeignArray& array) noexcept {
  const auto width = static_cast<std::int64_t>(itemsize(array.dtype));
  for (const std::int64_t stride : array.strides) {
    if (stride % width != 0) return false;
  }
  return true;
}

/// Null when it can be shared.
const char* reason_to_copy(const ForeignArray& array) noexcept {
  if (array.swapped) return "its bytes are in the other order";
  if (!has_whole_strides(array)) return "its strides are no multiples of the element's size";
  if (array.read_only) return "it is read-only, which a tensor cannot be";
  return nullptr;
}

Tensor shared(ForeignArray&& array) {
  const auto width = static_cast<std::int64_t>(itemsize(array.dtype));
  for (std::int64_t& stride : array.strides) stride /= width;
  return Tensor::from_blob(array.data, array.shape, array.strides, array.dtype,
                           std::move(array.release));
}

/// Elements at any stride and in any byte order: the bytes become an additional axis, are copied
/// like any strided array, and are then read as elements.
Tensor gathered(ForeignArray&& array, const char* who) {
  const auto width = static_cast<std::int64_t>(itemsize(array.dtype));
  Dims shape = array.shape;
  Dims strides = array.strides;
  shape.push_back(width);
  strides.push_back(array.swapped ? -1 : 1);
  char* first = static_cast<char*>(array.data) + (array.swapped ? width - 1 : 0);
  const Tensor bytes =
      Tensor::from_blob(first, shape, strides, DType::UInt8, std::move(array.release));
  const Tensor copy = unlocked(bytes.numel(), [&] { return clone(bytes); });
  return Tensor::view_of(copy.storage(), array.dtype, Layout::contiguous(array.shape), who);
}

}  // namespace

Tensor adopt(ForeignArray&& array, const Asked& asked) {
  if (checked_numel(array.shape, array.dtype, asked.who) == 0) {
    array.strides = Dims(array.shape.size(), 0);
    array.swapped = false;
  }
  const char* reason = reason_to_copy(array);
  const DType dtype = asked.dtype.value_or(array.dtype);
  if (asked.copy == false && (reason != nullptr || dtype != array.dtype)) {
    throw ValueError(message(asked.who, ": copy=False, but this array of ", name(array.dtype), " ",
                             to_string(array.shape), " has to be copied: ",
                             reason != nullptr ? reason : "another dtype is asked for"));
  }
  const bool gathers = array.swapped || !has_whole_strides(array);
  const bool copies = asked.copy == true || reason != nullptr;
  Tensor x = gathers ? gathered(std::move(array), asked.who) : shared(std::move(array));
  if (dtype != x.dtype()) return unlocked(x.numel(), [&] { return astype(x, dtype); });
  if (copies && !gathers) return unlocked(x.numel(), [&] { return clone(x); });
  return x;
}

std::optional<DType> dtype_of_kind(char kind, std::size_t width) noexcept {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::BFloat16) continue;
    if (kind_of(dtype) == kind && itemsize(dtype) == width) return dtype;
  }
  return std::nullopt;
}

char kind_of(DType dtype) noexcept {
  if (is_bool(dtype)) return 'b';
  if (is_signed_int(dtype)) return 'i';
  return is_unsigned_int(dtype) ? 'u' : 'f';
}

std::string type_text(nb::handle object) { return shown(object.type()); }

void require_no_grad(const Tensor& x, const char* who) {
  if (!x.requires_grad()) return;
  throw GradError(message(who, ": ", describe(x),
                          " requires a gradient, which would not follow its elements out of "
                          "baregrad: use x.detach()"));
}

}  // namespace baregrad::python

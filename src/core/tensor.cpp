// Tensor: allocation, borrowed memory, and the one door to views.
#include "baregrad/tensor.h"

#include <cmath>
#include <cstring>
#include <new>

#include "baregrad/error.h"
#include "core/checked.h"
#include "core/device_hooks.h"
#include "core/history.h"
#include "core/host.h"
#include "core/message.h"
#include "core/recycle.h"

namespace baregrad {

namespace {

/// Least and greatest element offset a layout touches, relative to its own offset.
struct Reach {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

Reach reach_of(const Dims& shape, const Dims& strides, const char* who) {
  Reach reach;
  for (int i = 0; i < shape.size(); ++i) {
    const std::int64_t span = checked_mul(strides.data()[i], shape.data()[i] - 1, who);
    auto& end = span < 0 ? reach.low : reach.high;
    end = checked_add(end, span, who);
  }
  return reach;
}

void check_same_length(const Dims& shape, const Dims& strides, const char* who) {
  if (shape.size() != strides.size()) {
    throw ShapeError(message(who, ": shape ", to_string(shape), " and strides ", to_string(strides),
                             " differ in length"));
  }
}

/// Strides that no element needs could be any number and wrap in later arithmetic; they are kept
/// only where they make sense: within the `room` of the storage along an axis of size 1 ...
void tame_unit_strides(Layout& layout, std::int64_t room) {
  for (int i = 0; i < layout.ndim(); ++i) {
    std::int64_t& stride = layout.strides.data()[i];
    if (layout.shape.data()[i] == 1 && (stride > room || stride < -room)) stride = 1;
  }
}

/// ... and in an array without elements, while all they span stays far from 2^63 bytes.
void tame_empty_strides(Layout& layout) {
  double span = 0;
  for (int i = 0; i < layout.ndim(); ++i) {
    span += std::fabs(static_cast<double>(layout.strides[i])) *
            (static_cast<double>(layout.shape[i]) + 1);
  }
  if (span > 0x1p58) layout.strides = contiguous_strides(layout.shape);
}

void set_contiguous_strides(Layout& layout) noexcept {
  layout.strides = layout.shape;
  std::int64_t step = 1;
  for (int i = layout.ndim() - 1; i >= 0; --i) {
    layout.strides[i] = step;
    step *= layout.shape[i] > 1 ? layout.shape[i] : 1;
  }
}

}  // namespace

TensorImpl::TensorImpl(Ref<Storage>&& storage, DType dtype, const Layout& layout) noexcept
    : dtype_(dtype),
      contiguous_(layout.is_contiguous()),
      numel_(layout.numel()),
      data_(static_cast<char*>(storage->data()) +
            layout.offset * static_cast<std::int64_t>(itemsize(dtype))),
      storage_(std::move(storage)),
      layout_(layout) {
  aligned_ = (reinterpret_cast<std::uintptr_t>(data_) & (itemsize(dtype) - 1)) == 0;
  packed_ = contiguous_ && aligned_ && storage_->device().is_cpu();
}

TensorImpl::TensorImpl(Ref<Storage>&& storage, DType dtype, const Dims& shape,
                       std::int64_t numel) noexcept
    : dtype_(dtype),
      contiguous_(true),
      numel_(numel),
      data_(static_cast<char*>(storage->data())),
      storage_(std::move(storage)) {
  layout_.shape = shape;
  set_contiguous_strides(layout_);
  packed_ = storage_->device().is_cpu();
}

TensorImpl::TensorImpl(const TensorImpl& other) noexcept
    : dtype_(other.dtype_),
      contiguous_(other.contiguous_),
      numel_(other.numel_),
      data_(other.data_),
      storage_(other.storage_),
      aligned_(other.aligned_),
      packed_(other.packed_),
      layout_(other.layout_) {}

void TensorImpl::destroy(TensorImpl* impl) noexcept {
  if (impl->owns_leaf_) impl->node_->abandon();
  impl->~TensorImpl();
  Recycler<TensorImpl>::give(impl);
}

namespace {
[[noreturn, gnu::noinline, gnu::cold]] void throw_no_bookkeeping() {
  throw OutOfMemory("tensor: no memory for the bookkeeping of a tensor", sizeof(TensorImpl),
                    current_allocator().stats().live_bytes);
}
[[noreturn, gnu::noinline, gnu::cold]] void throw_no_memory(const OutOfMemory& e, const Dims& shape,
                                                            DType dtype, const char* who) {
  throw OutOfMemory(message(who, ": no memory for ", name(dtype), to_string(shape), ": ", e.what()),
                    e.requested_bytes(), e.live_bytes());
}
}  // namespace

template <class... Args>
Tensor Tensor::make(Args&&... args) {
  void* block = Recycler<TensorImpl>::take();
  if (block == nullptr) [[unlikely]]
    throw_no_bookkeeping();
  return Tensor(Ref<TensorImpl>::adopt(new (block) TensorImpl(std::forward<Args>(args)...)));
}

Tensor History::plain(const Tensor& t) { return Tensor::make(*t.impl_); }

void History::set_elements(const Tensor& t, const Tensor& source) noexcept {
  TensorImpl& to = *t.impl_;
  const TensorImpl& from = *source.impl_;
  to.dtype_ = from.dtype_;
  to.contiguous_ = from.contiguous_;
  to.numel_ = from.numel_;
  to.data_ = from.data_;
  to.storage_ = from.storage_;
  to.aligned_ = from.aligned_;
  to.packed_ = from.packed_;
  to.layout_ = from.layout_;
  make_root(t);
}

Tensor Tensor::view_of(Ref<Storage> storage, DType dtype, const Layout& layout, const char* who) {
  if (!storage) throw ValueError(message(who, ": there is no storage to view"));
  check_same_length(layout.shape, layout.strides, who);
  const std::int64_t room = static_cast<std::int64_t>(storage->bytes() / itemsize(dtype));
  Layout checked = layout;
  if (checked_numel(layout.shape, dtype, who) == 0) {
    // Nothing is reachable; keep the offset where a pointer may point.
    if (checked.offset < 0 || checked.offset > room) checked.offset = 0;
    tame_empty_strides(checked);
    return make(std::move(storage), dtype, checked);
  }
  const Reach reach = reach_of(layout.shape, layout.strides, who);
  const std::int64_t first = checked_add(layout.offset, reach.low, who);
  const std::int64_t last = checked_add(layout.offset, reach.high, who);
  if (first < 0 || last >= room) {
    throw ShapeError(message(who, ": shape ", to_string(layout.shape), " with strides ",
                             to_string(layout.strides), " and offset ", layout.offset,
                             " reaches elements ", first, " to ", last, " of a storage of ", room));
  }
  tame_unit_strides(checked, room);
  return make(std::move(storage), dtype, checked);
}

Tensor Tensor::allocate(const Dims& shape, DType dtype, Device device, const char* who) {
  if (device.is_cpu()) return allocate(shape, dtype, who);
  const std::int64_t numel = checked_numel(shape, dtype, who);
  Ref<Storage> storage;
  try {
    storage = Storage::allocate(checked_bytes(numel, dtype), device);
  } catch (const OutOfMemory& e) {
    throw_no_memory(e, shape, dtype, who);
  }
  return make(std::move(storage), dtype, shape, numel);
}

Tensor Tensor::allocate(const Dims& shape, DType dtype, const char* who) {
  const std::int64_t numel = checked_numel(shape, dtype, who);
  Ref<Storage> storage;
  try {
    storage = Storage::allocate(checked_bytes(numel, dtype));
  } catch (const OutOfMemory& e) {
    // The allocator knows bytes only: the caller asked for a shape.
    throw_no_memory(e, shape, dtype, who);
  }
  return make(std::move(storage), dtype, shape, numel);
}

Tensor Tensor::from_blob(void* data, const Dims& shape, DType dtype,
                         std::function<void(void*)> deleter) {
  checked_numel(shape, dtype, "from_blob");
  return from_blob(data, shape, contiguous_strides(shape), dtype, std::move(deleter));
}

Tensor Tensor::from_blob(void* data, const Dims& shape, const Dims& strides, DType dtype,
                         std::function<void(void*)> deleter) {
  constexpr const char* kWho = "from_blob";
  check_same_length(shape, strides, kWho);
  const std::int64_t numel = checked_numel(shape, dtype, kWho);
  if (numel > 0 && data == nullptr) {
    throw ValueError(message(kWho, ": null pointer for shape ", to_string(shape)));
  }
  const auto width = static_cast<std::int64_t>(itemsize(dtype));
  Reach reach{0, -1};
  if (numel > 0) reach = reach_of(shape, strides, kWho);
  const std::int64_t low = checked_mul(reach.low, width, kWho);
  const std::int64_t extent = checked_add(reach.high, checked_mul(reach.low, -1, kWho), kWho);
  const std::int64_t count = checked_add(extent, 1, kWho);
  const std::int64_t bytes = checked_mul(count, width, kWho);
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t before = 0 - static_cast<std::uintptr_t>(low);
  if (before > address || static_cast<std::uintptr_t>(bytes) > UINTPTR_MAX - (address - before)) {
    throw ShapeError(message(kWho, ": shape ", to_string(shape), " with strides ",
                             to_string(strides), " of ", name(dtype),
                             " reaches beyond all addresses"));
  }
  Layout layout{shape, strides, -reach.low};
  if (numel > 0) {
    tame_unit_strides(layout, count);
  } else {
    tame_empty_strides(layout);
  }
  std::function<void(void*)> release;
  if (deleter) release = [data, deleter = std::move(deleter)](void*) { deleter(data); };
  Ref<Storage> storage = Storage::borrow(static_cast<char*>(data) + low,
                                         static_cast<std::size_t>(bytes), std::move(release));
  return make(std::move(storage), dtype, layout);
}

Tensor Tensor::copy_of(const void* values, std::int64_t count, const Dims& shape, DType dtype) {
  if (checked_numel(shape, dtype, "Tensor::of") != count) {
    throw ShapeError(
        message("Tensor::of: ", count, " values do not fill shape ", to_string(shape)));
  }
  const Device device = default_device();
  Tensor out = allocate(shape, dtype, device, "Tensor::of");
  if (count == 0) return out;
  if (device.is_cpu()) {
    std::memcpy(out.data_ptr(), values, out.nbytes());
  } else {
    detail::hooks_of(device, "Tensor::of")
        .copy_from_host(device.index, out.data_ptr(), values, out.nbytes());
  }
  return out;
}

Tensor Tensor::scalar(const Scalar& value, std::optional<DType> dtype, const char* who) {
  char element[8];
  const DType type = dtype.value_or(default_dtype(value));
  store_scalar(value, type, element, who);
  Tensor out = allocate({}, type, who);
  std::memcpy(out.data_ptr(), element, itemsize(type));
  return out;
}

std::int64_t Tensor::size(std::int64_t axis) const {
  if (!defined()) throw ValueError("size: the tensor is undefined");
  return shape()[normalize_axis(axis, ndim(), "size")];
}

Scalar Tensor::item() const {
  if (!defined() || numel() != 1) {
    throw ShapeError(message("item: ", describe(*this), " does not hold exactly one element"));
  }
  if (device().is_cpu()) return load_scalar(data_ptr(), dtype());
  return load_scalar(HostRead(*this).bytes(), dtype());
}

void Tensor::throw_undefined(const char* member) {
  throw ValueError(message(member, ": the tensor is undefined; it holds nothing"));
}

void Tensor::throw_not_of_dtype(DType asked, const char* who) const {
  if (!defined()) throw ValueError(message(who, ": the tensor is undefined"));
  throw DTypeError(message(who, ": asked for ", name(asked), " of a tensor ", describe(*this)));
}

void Tensor::throw_not_on_cpu(const char* who) const {
  throw ValueError(
      message(who, ": ", describe(*this), " is on ", to_string(device()), "; take cpu() first"));
}

void Tensor::throw_no_room(const char* who) const {
  throw OutOfMemory(message(who, ": no memory for the elements of ", describe(*this)), nbytes(),
                    current_allocator().stats().live_bytes);
}

std::string describe(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  return std::string(name(tensor.dtype())) + to_string(tensor.shape());
}

}  // namespace baregrad

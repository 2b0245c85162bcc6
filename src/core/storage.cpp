// Storage: allocated or borrowed bytes.
#include "baregrad/storage.h"

#include <new>

#include "baregrad/error.h"
#include "core/device_hooks.h"
#include "core/recycle.h"

namespace baregrad {

namespace {
/// A failed `new` of a few bytes of bookkeeping is out-of-memory like any other.
[[noreturn, gnu::noinline, gnu::cold]] void throw_no_bookkeeping(std::size_t bytes) {
  throw OutOfMemory("storage: no memory for the bookkeeping of a tensor", bytes,
                    current_allocator().stats().live_bytes);
}
}  // namespace

inline Ref<Storage> Storage::make() {
  void* block = Recycler<Storage>::take();
  if (block == nullptr) throw_no_bookkeeping(sizeof(Storage));
  return Ref<Storage>::adopt(new (block) Storage);
}

Ref<Storage> Storage::allocate(std::size_t bytes) {
  Ref<Storage> storage = make();
  Allocator& allocator = current_allocator();
  storage->data_ = allocator.allocate(bytes);
  storage->bytes_ = bytes;
  storage->allocator_ = &allocator;
  return storage;
}

Ref<Storage> Storage::allocate(std::size_t bytes, Device device) {
  if (device.is_cpu()) return allocate(bytes);
  Allocator& allocator = detail::hooks_of(device, "allocate").allocator(device.index);
  Ref<Storage> storage = make();
  storage->data_ = allocator.allocate(bytes);
  storage->bytes_ = bytes;
  storage->allocator_ = &allocator;
  storage->device_ = device;
  return storage;
}

Ref<Storage> Storage::borrow(void* data, std::size_t bytes, std::function<void(void*)> deleter) {
  Ref<Storage> storage = make();
  storage->data_ = data;
  storage->bytes_ = bytes;
  storage->deleter_ = std::move(deleter);
  return storage;
}

void Storage::destroy(Storage* storage) noexcept {
  if (storage->allocator_ != nullptr) {
    storage->allocator_->deallocate(storage->data_, storage->bytes_);
  } else if (storage->deleter_) {
    storage->deleter_(storage->data_);
  }
  storage->~Storage();
  Recycler<Storage>::give(storage);
}

}  // namespace baregrad

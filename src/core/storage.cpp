#include "baregrad/storage.h"

#include <new>

#include "baregrad/error.h"

namespace baregrad {

namespace {
/// A failed `new` of a few bytes of bookkeeping is out-of-memory like any other.
[[noreturn]] void throw_no_bookkeeping(std::size_t bytes) {
  throw OutOfMemory("storage: no memory for the bookkeeping of a tensor", bytes,
                    current_allocator().stats().live_bytes);
}
}  // namespace

Ref<Storage> Storage::allocate(std::size_t bytes) {
  auto* storage = new (std::nothrow) Storage;
  if (storage == nullptr) throw_no_bookkeeping(sizeof(Storage));
  Ref<Storage> ref = Ref<Storage>::adopt(storage);
  Allocator& allocator = current_allocator();
  storage->data_ = allocator.allocate(bytes);
  storage->bytes_ = bytes;
  storage->allocator_ = &allocator;
  return ref;
}

Ref<Storage> Storage::borrow(void* data, std::size_t bytes, std::function<void(void*)> deleter) {
  auto* storage = new (std::nothrow) Storage;
  if (storage == nullptr) throw_no_bookkeeping(sizeof(Storage));
  Ref<Storage> ref = Ref<Storage>::adopt(storage);
  storage->data_ = data;
  storage->bytes_ = bytes;
  storage->deleter_ = std::move(deleter);
  return ref;
}

void Storage::destroy(Storage* storage) noexcept {
  if (storage->allocator_ != nullptr) {
    storage->allocator_->deallocate(storage->data_, storage->bytes_);
  } else if (storage->deleter_) {
    storage->deleter_(storage->data_);
  }
  delete storage;
}

}  // namespace baregrad

// Storage: a block of bytes, who owns it, and how often it was written. Knows no shape.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "baregrad/allocator.h"
#include "baregrad/device.h"
#include "baregrad/export.h"

namespace baregrad {

/// Intrusive reference counting for Storage and TensorImpl: a handle is one pointer.
template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  /// Takes over a reference that already counts.
  static Ref adopt(T* object) noexcept {
    Ref r;
    r.object_ = object;
    return r;
  }
  Ref(const Ref& other) noexcept : object_(other.object_) {
    if (object_ != nullptr) object_->refs_.fetch_add(1, std::memory_order_relaxed);
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ == nullptr) return;
    // The sole owner needs no read-modify-write: nobody else can raise the count.
    if (object_->refs_.load(std::memory_order_acquire) == 1 ||
        object_->refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      T::destroy(object_);
    }
  }
  /// Gives the reference up without counting it down.
  T* release() noexcept { return std::exchange(object_, nullptr); }
  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  std::uint32_t use_count() const noexcept {
    return object_ == nullptr ? 0 : object_->refs_.load(std::memory_order_acquire);
  }

 private:
  T* object_ = nullptr;
};

class BAREGRAD_API Storage {
 public:
  /// `bytes` from current_allocator(); contents undefined. Throws OutOfMemory.
  static Ref<Storage> allocate(std::size_t bytes);
  /// The same on a device, whose addresses the host cannot use.
  static Ref<Storage> allocate(std::size_t bytes, Device device);
  /// Memory of somebody else; `deleter(data)` runs when the last tensor on it is gone.
  static Ref<Storage> borrow(void* data, std::size_t bytes, std::function<void(void*)> deleter);

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }
  Device device() const noexcept { return device_; }
  /// Memory of somebody else, who may look at it and need not allow writes.
  bool is_borrowed() const noexcept { return allocator_ == nullptr; }
  /// Counts writes through any view of this storage.
  std::uint32_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  void bump_version() noexcept { version_.fetch_add(1, std::memory_order_relaxed); }

 private:
  friend class Ref<Storage>;
  Storage() = default;
  ~Storage() = default;
  static Ref<Storage> make();
  static void destroy(Storage* storage) noexcept;

  std::atomic<std::uint32_t> refs_{1};
  std::atomic<std::uint32_t> version_{0};
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Device device_{};
  Allocator* allocator_ = nullptr;  // null: borrowed
  std::function<void(void*)> deleter_;
};

}  // namespace baregrad

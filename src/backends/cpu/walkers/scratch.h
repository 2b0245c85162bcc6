// Temporary memory of one op: on the stack while it is small, else from the current allocator.
#pragma once

#include <cstddef>

#include "baregrad/allocator.h"

namespace baregrad::kernels {

/// Constructed before anything is written: it may throw OutOfMemory.
template <std::size_t kInline>
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) : bytes_(bytes) {
    if (bytes <= kInline) return;
    allocator_ = &current_allocator();
    data_ = static_cast<char*>(allocator_->allocate(bytes));
  }
  ~Scratch() {
    if (allocator_ != nullptr) allocator_->deallocate(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  char* data() noexcept { return data_; }

 private:
  alignas(kAlignment) char inline_[kInline];
  char* data_ = inline_;
  std::size_t bytes_;
  Allocator* allocator_ = nullptr;
};

}  // namespace baregrad::kernels

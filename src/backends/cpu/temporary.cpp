// Packed copies of inputs.
#include "backends/cpu/temporary.h"

#include "backends/cpu/walkers/elementwise.h"

namespace baregrad::kernels {

Temporary::~Temporary() {
  if (allocator_ != nullptr) allocator_->deallocate(view_.data, bytes_);
}

const View& Temporary::allocate(const View& like, DType dtype) {
  bytes_ = static_cast<std::size_t>(numel(like)) * itemsize(dtype);
  Allocator& allocator = current_allocator();
  view_ = like;
  view_.data = allocator.allocate(bytes_);
  allocator_ = &allocator;
  std::int64_t step = 1;
  for (int i = like.ndim; i-- > 0;) {
    strides_[static_cast<std::size_t>(i)] = step;
    step *= like.shape[i] > 1 ? like.shape[i] : 1;
  }
  view_.dtype = dtype;
  view_.strides = strides_.data();
  view_.packed = true;
  return view_;
}

const View& Temporary::copy_of(const View& from, DType dtype) {
  allocate(from, dtype);
  if (bytes_ != 0) copy(from, view_);
  return view_;
}

}  // namespace baregrad::kernels

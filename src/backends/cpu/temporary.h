// A packed array of the op's own, for inputs that a kernel does not take as they are.
#pragma once

#include <array>

#include "backends/call.h"
#include "baregrad/allocator.h"

namespace baregrad::kernels {

/// Row-major memory from the current allocator, of a view's shape.
class Temporary {
 public:
  Temporary() noexcept = default;
  ~Temporary();
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  /// Memory for the elements of `like` in `dtype`, contents undefined.
  const View& allocate(const View& like, DType dtype);
  /// The elements of `from`, converted.
  const View& copy_of(const View& from, DType dtype);

 private:
  Allocator* allocator_ = nullptr;
  std::size_t bytes_ = 0;
  std::array<std::int64_t, kMaxDims> strides_;  // filled by allocate()
  View view_;
};

}  // namespace baregrad::kernels

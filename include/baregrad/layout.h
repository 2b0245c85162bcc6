// Layout: shape, strides and offset of a strided array. Knows no memory.
#pragma once

#include <cstdint>

#include "baregrad/dims.h"
#include "baregrad/export.h"

namespace baregrad {

/// Strides and offset count elements; strides may be 0 (repeated) or negative (reversed).
struct BAREGRAD_API Layout {
  Dims shape;
  Dims strides;
  std::int64_t offset = 0;

  /// Row-major, offset 0. Sizes must have passed checked_numel.
  static Layout contiguous(const Dims& shape);

  int ndim() const noexcept { return shape.size(); }
  std::int64_t numel() const noexcept;
  /// Row-major without gaps; axes of size 1 may have any stride, empty arrays always are.
  bool is_contiguous() const noexcept;
  /// Two indices may mean the same element (a stride of 0 over more than one element, or strides
  /// that fold onto each other). Writing through such a layout is refused.
  bool may_self_overlap() const noexcept;
};

/// Row-major strides of `shape`.
BAREGRAD_API Dims contiguous_strides(const Dims& shape);

}  // namespace baregrad

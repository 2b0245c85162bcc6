// The only arithmetic on sizes: checked, so that no product wraps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "baregrad/dims.h"
#include "baregrad/dtype.h"

namespace baregrad {

/// Number of elements of `shape`. Throws ValueError for a negative size, and ShapeError when the
/// product (without zeros, so that strides exist too) or its bytes overflow int64. `who` begins the
/// message.
std::int64_t checked_numel_of_axes(const Dims& shape, DType dtype, const char* who);
inline std::int64_t checked_numel(const Dims& shape, DType dtype, const char* who) {
  return shape.empty() ? 1 : checked_numel_of_axes(shape, dtype, who);
}

/// numel * itemsize; numel is a result of checked_numel.
inline std::size_t checked_bytes(std::int64_t numel, DType dtype) noexcept {
  return static_cast<std::size_t>(numel) * itemsize(dtype);
}

/// a * b and a + b; throw ShapeError when they overflow int64.
std::int64_t checked_mul(std::int64_t a, std::int64_t b, const char* who);
std::int64_t checked_add(std::int64_t a, std::int64_t b, const char* who);

/// Maps -ndim..ndim-1 to 0..ndim-1; throws IndexError with the op, the axis and the shape.
int normalize_axis(std::int64_t axis, int ndim, const char* who);

}  // namespace baregrad

// Checked size arithmetic and axis normalisation.
#include "core/checked.h"

#include "baregrad/error.h"
#include "core/message.h"

namespace baregrad {

std::int64_t checked_numel_of_axes(const Dims& shape, DType dtype, const char* who) {
  std::int64_t product = 1;
  bool empty = false;
  bool wrapped = false;
  for (const std::int64_t size : shape) {
    if (size < 0) {
      throw ValueError(message(who, ": negative size ", size, " in shape ", to_string(shape)));
    }
    if (size == 0) {
      empty = true;
    } else {
      wrapped |= __builtin_mul_overflow(product, size, &product);
    }
  }
  std::int64_t bytes = 0;
  wrapped |= __builtin_mul_overflow(product, static_cast<std::int64_t>(itemsize(dtype)), &bytes);
  if (wrapped) {
    throw ShapeError(message(who, ": shape ", to_string(shape), " of ", name(dtype),
                             " has more bytes than an address can count"));
  }
  return empty ? 0 : product;
}

std::int64_t checked_mul(std::int64_t a, std::int64_t b, const char* who) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) {
    throw ShapeError(message(who, ": ", a, " * ", b, " leaves the 64-bit range"));
  }
  return result;
}

std::int64_t checked_add(std::int64_t a, std::int64_t b, const char* who) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) {
    throw ShapeError(message(who, ": ", a, " + ", b, " leaves the 64-bit range"));
  }
  return result;
}

int normalize_axis(std::int64_t axis, int ndim, const char* who) {
  if (axis < -ndim || axis >= ndim) {
    throw IndexError(ndim == 0
                         ? message(who, ": axis ", axis, " given for a tensor without axes (0-d)")
                         : message(who, ": axis ", axis, " is out of range for ", ndim,
                                   " dimensions (", -ndim, " to ", ndim - 1, ")"));
  }
  return static_cast<int>(axis < 0 ? axis + ndim : axis);
}

}  // namespace baregrad

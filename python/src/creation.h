// Common arguments of creation functions: a shape as one argument or several, a dtype, a device,
// and requires_grad.
#pragma once

#include <string>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "bindings.h"
#include "call.h"
#include "casters.h"
#include "core/message.h"
#include "core/rename.h"
#include "interop.h"

namespace baregrad::python {

inline Tensor with_grad(Tensor&& x, bool wanted, const char* who) {
  if (wanted) in_name_of(who, [&] { x.requires_grad_(); });
  return std::move(x);
}

/// The number of elements of a shape. May return any number beyond kLongWork instead.
inline std::int64_t work_of(const Dims& shape) noexcept {
  std::int64_t work = 1;
  for (const std::int64_t size : shape) {
    if (size > kLongWork) return kLongWork + 1;
    work = size > 0 && work <= kLongWork ? work * size : work;
  }
  return work;
}

/// zeros(2, 3): all the positional arguments are sizes.
inline Dims sizes_from(const nb::args& sizes, const char* who) {
  Dims shape;
  if (sizes.size() == 0 || !dims_from(sizes.ptr(), shape)) {
    throw DTypeError(message(who, ": a shape is integers or one tuple of them"));
  }
  return shape;
}

/// The signature of name(2, 3, ...); `more` are keyword arguments between device and requires_grad.
inline std::string sizes_signature(const char* name, const char* more = "") {
  return message("def ", name,
                 "(*sizes: int, dtype: DType | None = None, device: Device | str | None = None, ",
                 more, "requires_grad: bool = False) -> Tensor");
}

}  // namespace baregrad::python

// The error of an index that is out of range.
#pragma once

#include <cstdint>

#include "baregrad/dims.h"
#include "baregrad/dtype.h"

namespace baregrad {

/// The axis that indices point into, as the caller knows it.
struct IndexBounds {
  std::int64_t axis;
  std::int64_t size;
  DType dtype;
  const Dims& shape;
};

/// Throws IndexError.
[[noreturn]] void throw_out_of_bounds(std::int64_t index, const IndexBounds& bounds,
                                      const char* who);

}  // namespace baregrad

// Kinds of numbers in the order in which one can hold another.
#pragma once

#include "baregrad/dtype.h"

namespace baregrad {

/// bool 0, integers 1, floats 2.
constexpr int dtype_kind(DType dtype) { return is_bool(dtype) ? 0 : is_integer(dtype) ? 1 : 2; }

}  // namespace baregrad

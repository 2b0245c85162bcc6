// Which memory a tensor begins at, for code that tells tensors apart and reads no bytes.
#pragma once

#include "baregrad/tensor.h"

namespace baregrad {

/// The address of the first element, on whatever device it is: a key, and nothing to read from.
inline const void* place_of(const Tensor& t) { return t.data_ptr(); }

}  // namespace baregrad

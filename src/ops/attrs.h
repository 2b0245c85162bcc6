// Attributes of an op call: plain data, the same for eager execution, the tape and a tracer.
#pragma once

#include <cstdint>

#include "baregrad/dims.h"
#include "baregrad/dtype.h"

namespace baregrad {

/// Which fields an op reads is said where its public function fills them in.
struct Attrs {
  double params[2] = {0.0, 0.0};  ///< numbers of the op: slope, alpha, bounds, ...
  std::uint32_t axes = 0;         ///< a bit per axis
  int axis = 0;
  bool keepdims = false;
  bool flag = false;  ///< descending, accumulate, right, ...
  int mode = 0;
  DType dtype = DType::Float32;  ///< of the result, where the op lets the caller choose
  std::int64_t ints[4] = {0, 0, 0, 0};
  Dims dims[3];
};

}  // namespace baregrad

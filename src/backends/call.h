// What a backend is given to run: an op call over plain views, without tensors.
#pragma once

#include <cstdint>
#include <span>

#include "baregrad/dims.h"
#include "baregrad/dtype.h"
#include "baregrad/generator.h"
#include "ops/attrs.h"
#include "ops/op_id.h"

namespace baregrad::kernels {

/// A strided array: what a Tensor is to a kernel. Strides count elements and may be 0 or negative.
struct View {
  void* data = nullptr;
  DType dtype = DType::Float32;
  int ndim = 0;
  const std::int64_t* shape = nullptr;
  const std::int64_t* strides = nullptr;
  bool packed = false;  ///< known to be row-major and aligned to the element
};

inline std::int64_t numel(const View& v) noexcept {
  std::int64_t n = 1;
  for (int i = 0; i < v.ndim; ++i) n *= v.shape[i];
  return n;
}

/// Results are inferred and allocated, or are the outputs of a call in place. Inputs overlap no
/// output, except that an elementwise output may be exactly an input.
struct Call {
  OpId op;
  AttrsRef attrs;
  std::span<const View> in;
  std::span<const View> out;
  const char* who = nullptr;       ///< what messages start with
  DType compute = DType::Float32;  ///< elementwise ops, reductions, products: what they compute in
  Generator::State random = {};    ///< of random ops: where their numbers begin
};

}  // namespace baregrad::kernels

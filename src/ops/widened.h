// Half precision in ops that are made of several: computed in float32, rounded once at the end.
#pragma once

#include <initializer_list>

#include "baregrad/ops.h"

namespace baregrad {

/// Without it every step of such an op would round to 8 or 11 bits, and a step whose result the
/// dtype cannot hold would be infinite although the op's own result is not.
class Widened {
 public:
  /// The floating tensors that the op takes; undefined and other ones do not matter.
  Widened(std::initializer_list<const Tensor*> inputs) {
    bool any = false;
    for (const Tensor* t : inputs) {
      if (!t->defined() || !is_floating(t->dtype())) continue;
      result_ = any ? promote(result_, t->dtype()) : t->dtype();
      any = true;
    }
  }
  /// The input as it is computed with.
  Tensor operator()(const Tensor& t) const {
    if (!t.defined() || !is_floating(t.dtype()) || itemsize(t.dtype()) != 2) return t;
    return astype(t, DType::Float32);
  }
  /// The op's result in the dtype that the inputs promote to.
  Tensor rounded(const Tensor& t) const { return itemsize(result_) == 2 ? astype(t, result_) : t; }

 private:
  DType result_ = DType::Float32;
};

}  // namespace baregrad

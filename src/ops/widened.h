// Half precision in ops that are made of several: computed in float32, rounded once at the end.
#pragma once

#include <initializer_list>
#include <vector>

#include "baregrad/ops.h"
#include "core/dtype_kind.h"

namespace baregrad {

/// Without it every step of such an op would round to 8 or 11 bits, and a step whose result the
/// dtype cannot hold would be infinite although the op's own result is not.
class Widened {
 public:
  /// The floating tensors that the op takes; undefined and other ones do not matter.
  Widened(std::initializer_list<const Tensor*> inputs) {
    for (const Tensor* t : inputs) add(*t);
  }
  explicit Widened(const std::vector<Tensor>& inputs) {
    for (const Tensor& t : inputs) add(t);
  }
  /// The input as it is computed with.
  Tensor operator()(const Tensor& t) const {
    if (!t.defined() || !is_half(t.dtype())) return t;
    return astype(t, DType::Float32);
  }
  /// The op's result in the dtype that the inputs promote to.
  Tensor rounded(const Tensor& t) const { return is_half(result_) ? astype(t, result_, false) : t; }

 private:
  void add(const Tensor& t) {
    if (!t.defined() || !is_floating(t.dtype())) return;
    result_ = any_ ? promote(result_, t.dtype()) : t.dtype();
    any_ = true;
  }

  DType result_ = DType::Float32;
  bool any_ = false;
};

}  // namespace baregrad

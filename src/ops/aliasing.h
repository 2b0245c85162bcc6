// Which tensors share memory, and what that means for writes.
#pragma once

#include "baregrad/tensor.h"
#include "ops/op_call.h"

namespace baregrad {

/// Some byte may belong to both.
bool overlaps(const Tensor& a, const Tensor& b);
/// The same elements in the same order.
bool same_elements(const Tensor& a, const Tensor& b);
/// Throws ValueError for an undefined output, or one that holds some element more than once.
void check_writable(const OpCall& call, const Tensor& out);

/// While alive, `out` is written to: its version moves on, also where the op is abandoned half way.
class WriteScope {
 public:
  explicit WriteScope(const Tensor& out) noexcept : out_(out) {}
  ~WriteScope() { out_.storage()->bump_version(); }
  WriteScope(const WriteScope&) = delete;
  WriteScope& operator=(const WriteScope&) = delete;

 private:
  const Tensor& out_;
};

}  // namespace baregrad

// Shared by the ops that pick and place by position: index tensors, their bounds, written values.
#pragma once

#include <cstdint>

#include "baregrad/ops.h"

namespace baregrad {

/// Throws ValueError for an undefined tensor. `what` names it in messages.
void require_defined(const Tensor& x, const char* what, const char* who);

/// An integer tensor as int64; DTypeError for other dtypes (bool included), IndexError for a uint64
/// that int64 cannot hold.
Tensor as_int64(const Tensor& x, const char* what, const char* who);

/// The axis that indices point into, as the caller knows it.
struct IndexedAxis {
  std::int64_t axis;
  std::int64_t size;
  DType dtype;
  const Dims& shape;
};
/// Throws IndexError, naming the first of them, unless all int64 `indices` lie in [-size, size).
void check_positions(const Tensor& indices, const IndexedAxis& where, const char* who);
[[noreturn]] void throw_out_of_range(std::int64_t index, const IndexedAxis& where, const char* who);

/// How many elements of a bool tensor are true. An expanded one, of whatever size, is looked at
/// once.
std::int64_t count_true(const Tensor& mask);

/// A number as one element of x's dtype (8 bytes of room suffice). DTypeError for a float that
/// would lose its fraction in integers or bool.
void store_assigned(const Scalar& value, const Tensor& x, void* out, const char* who);
/// What is written into x, in x's dtype; a number becomes 0-d. DTypeError for a tensor of a wider
/// kind: floats into integers, numbers into bool.
Tensor assigned(const Operand& value, const Tensor& x, const char* who);

}  // namespace baregrad

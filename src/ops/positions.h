// Shared by the ops that pick and place by position: index tensors, their bounds, written values.
#pragma once

#include <cstdint>

#include "baregrad/ops.h"
#include "core/index_bounds.h"

namespace baregrad {

/// Throws ValueError for an undefined tensor. `what` names it in messages.
void require_defined(const Tensor& x, const char* what, const char* who);

/// An integer tensor as int64; DTypeError for other dtypes (bool included), IndexError for a uint64
/// that int64 cannot hold.
Tensor as_int64(const Tensor& x, const char* what, const char* who);

/// Throws IndexError unless all int64 `indices` lie in [-size, size). Reads them: for messages that
/// the op itself could not give.
void check_positions(const Tensor& indices, const IndexBounds& bounds, const char* who);

/// How many elements of a bool tensor are true. An expanded one, of whatever size, is looked at
/// once.
std::int64_t count_true(const Tensor& mask);

/// DTypeError for a float that would lose its fraction in an x of integers or bool.
void check_assigned(const Scalar& value, const Tensor& x, const char* who);
/// What is written into x, in x's dtype; a number becomes 0-d. DTypeError for a tensor of a wider
/// kind: floats into integers, numbers into bool.
Tensor assigned(const Operand& value, const Tensor& x, const char* who);

}  // namespace baregrad

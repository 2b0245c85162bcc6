// Helpers for tests of linear algebra: inputs, distances, plain loops.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/baregrad.h"
#include "tests/message_of.h"

namespace baregrad {

using autograd::Tensors;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Normal numbers that depend only on the seed.
inline Tensor drawn(const Dims& shape, std::uint64_t seed, DType dtype = DType::Float64) {
  Generator generator(seed);
  return astype(randn(shape, DType::Float64, &generator), dtype);
}
/// Symmetric, with eigenvalues of at least 1/2.
inline Tensor positive_definite(const Dims& stack, std::int64_t n, std::uint64_t seed) {
  Dims shape = stack;
  shape.push_back(n);
  shape.push_back(n);
  const Tensor a = drawn(shape, seed);
  return matmul(a, a.mT()) / static_cast<double>(n) + eye(n, {}, 0, DType::Float64) * 0.5;
}
/// The same elements with other strides: every second column of a transposed buffer.
inline Tensor strided(const Tensor& x) {
  const Tensor spread = repeat(x.mT(), 2, -1);
  return slice(spread, -1, Slice(0, {}, 2)).mT();
}

/// The greatest distance between elements; NaN if an element is NaN; 0 without elements.
inline double distance(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  if (a.numel() == 0) return 0.0;
  return max(abs(astype(a, DType::Float64) - astype(b, DType::Float64))).item<double>();
}
inline Tensor identity(std::int64_t n) { return eye(n, {}, 0, DType::Float64); }
/// The deviation of the columns from orthonormal ones.
inline double disorder(const Tensor& q) {
  return distance(matmul(q.mT(), q), broadcast_to(identity(q.size(-1)), matmul(q.mT(), q).shape()));
}

}  // namespace baregrad

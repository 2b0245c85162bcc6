// How random ops take numbers from a generator: a fact of the op, the same on every backend.
#pragma once

#include <cstdint>
#include <limits>

#include "baregrad/dtype.h"
#include "ops/op_id.h"

namespace baregrad {

/// Elements per 128-bit block of random bits: 32 bits each, or 64 for float64 and where the range
/// of the result may need them.
constexpr std::int64_t elements_per_block(OpId op, DType dtype) noexcept {
  const bool integers = op == OpId::random_int || op == OpId::random_perm;
  return integers || dtype == DType::Float64 ? 2 : 4;
}

/// The greatest finite value of a float dtype.
constexpr double greatest_finite(DType dtype) noexcept {
  switch (dtype) {
    case DType::Float16:
      return 65504.0;
    case DType::BFloat16:
      return 0x1.FEp127;
    case DType::Float32:
      return static_cast<double>(std::numeric_limits<float>::max());
    default:
      return std::numeric_limits<double>::max();
  }
}

}  // namespace baregrad

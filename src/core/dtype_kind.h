// Kinds of element types, beyond what the public dtype.h tells.
#pragma once

#include "baregrad/dtype.h"

namespace baregrad {

/// float16 and bfloat16: stored in two bytes, computed in float32.
constexpr bool is_half(DType dtype) noexcept {
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}

/// In the order in which kinds promote: a value of a kind can be held by the same kind and by later
/// ones.
enum class DTypeKind : std::uint8_t { Bool, Integer, Floating };
constexpr DTypeKind kind_of(DType dtype) noexcept {
  return is_bool(dtype)      ? DTypeKind::Bool
         : is_integer(dtype) ? DTypeKind::Integer
                             : DTypeKind::Floating;
}

}  // namespace baregrad

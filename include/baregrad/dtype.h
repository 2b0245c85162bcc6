// The 13 element types and how they promote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "baregrad/export.h"
#include "baregrad/half.h"

namespace baregrad {

enum class DType : std::uint8_t {
  Bool,
  Int8,
  Int16,
  Int32,
  Int64,
  UInt8,
  UInt16,
  UInt32,
  UInt64,
  Float16,
  BFloat16,
  Float32,
  Float64,
};
inline constexpr int kNumDTypes = 13;

// The array API's names for them.
inline constexpr DType bool_ = DType::Bool;
inline constexpr DType int8 = DType::Int8;
inline constexpr DType int16 = DType::Int16;
inline constexpr DType int32 = DType::Int32;
inline constexpr DType int64 = DType::Int64;
inline constexpr DType uint8 = DType::UInt8;
inline constexpr DType uint16 = DType::UInt16;
inline constexpr DType uint32 = DType::UInt32;
inline constexpr DType uint64 = DType::UInt64;
inline constexpr DType float16 = DType::Float16;
inline constexpr DType bfloat16 = DType::BFloat16;
inline constexpr DType float32 = DType::Float32;
inline constexpr DType float64 = DType::Float64;

/// What integers become where an op needs a float, and what creation functions default to.
inline constexpr DType kDefaultFloat = DType::Float32;

namespace detail {
inline constexpr std::uint8_t kItemSizes[kNumDTypes] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8};
}
constexpr std::size_t itemsize(DType dtype) noexcept {
  return detail::kItemSizes[static_cast<int>(dtype)];
}
constexpr bool is_floating(DType dtype) noexcept { return dtype >= DType::Float16; }
constexpr bool is_bool(DType dtype) noexcept { return dtype == DType::Bool; }
constexpr bool is_signed_int(DType dtype) noexcept {
  return dtype >= DType::Int8 && dtype <= DType::Int64;
}
constexpr bool is_unsigned_int(DType dtype) noexcept {
  return dtype >= DType::UInt8 && dtype <= DType::UInt64;
}
constexpr bool is_integer(DType dtype) noexcept {
  return is_signed_int(dtype) || is_unsigned_int(dtype);
}

/// "float32", "bool", ...
[[nodiscard]] BAREGRAD_API std::string_view name(DType dtype) noexcept;
/// The inverse of name(); throws DTypeError and lists the names.
[[nodiscard]] BAREGRAD_API DType dtype_from_name(std::string_view text);

/// The array API's promotion table; int with float gives the float, bool gives way to all,
/// float16 with bfloat16 gives float32. Throws DTypeError for uint64 with a signed integer, which
/// no integer dtype can hold.
[[nodiscard]] BAREGRAD_API DType promote(DType a, DType b);

/// DType of a C++ type: dtype_of<float> is DType::Float32.
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::Bool;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::Int8;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::Int16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::Int32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::Int64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::UInt8;
};
template <>
struct DTypeOf<std::uint16_t> {
  static constexpr DType value = DType::UInt16;
};
template <>
struct DTypeOf<std::uint32_t> {
  static constexpr DType value = DType::UInt32;
};
template <>
struct DTypeOf<std::uint64_t> {
  static constexpr DType value = DType::UInt64;
};
template <>
struct DTypeOf<Float16> {
  static constexpr DType value = DType::Float16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::BFloat16;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::Float32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::Float64;
};
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace baregrad

// A number without a dtype of its own: it takes the tensor's (a "weak" scalar).
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "baregrad/dtype.h"
#include "baregrad/export.h"

namespace baregrad {

/// For overloads that refuse what C++ would convert in silence: see the end of ops.h.
template <class T>
concept Switch = std::same_as<T, bool>;
template <class T>
concept NoSwitch = !std::same_as<T, bool>;

class Scalar {
 public:
  enum class Kind : std::uint8_t { Bool, Int, UInt, Float };

  constexpr Scalar() noexcept : kind_(Kind::Int), int_(0) {}
  constexpr Scalar(bool value) noexcept : kind_(Kind::Bool), int_(value ? 1 : 0) {}
  template <std::signed_integral T>
  constexpr Scalar(T value) noexcept : kind_(Kind::Int), int_(value) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) constexpr Scalar(T value) noexcept
      : kind_(Kind::UInt), uint_(value) {}
  template <std::floating_point T>
  constexpr Scalar(T value) noexcept : kind_(Kind::Float), float_(static_cast<double>(value)) {}

  constexpr Kind kind() const noexcept { return kind_; }
  /// Value as a double, rounded if an integer has more than 53 bits.
  constexpr double to_double() const noexcept {
    return kind_ == Kind::Float  ? float_
           : kind_ == Kind::UInt ? static_cast<double>(uint_)
                                 : static_cast<double>(int_);
  }
  /// Bits of an integer or bool; a float is truncated (saturating, NaN gives 0).
  BAREGRAD_API std::int64_t to_int64() const noexcept;
  BAREGRAD_API std::uint64_t to_uint64() const noexcept;
  constexpr bool to_bool() const noexcept {
    return kind_ == Kind::Float ? float_ != 0.0 : int_ != 0;
  }

 private:
  Kind kind_;
  union {
    std::int64_t int_;
    std::uint64_t uint_;
    double float_;
  };
};

/// The dtype of `scalar` met with a tensor of `dtype`: the tensor's own when its kind is at least
/// the scalar's; else int64 (bool with an integer) or the default float (integer with a float).
BAREGRAD_API DType weak_dtype(const Scalar& scalar, DType dtype) noexcept;
/// The dtype of a scalar on its own: bool, int64, uint64 or the default float.
BAREGRAD_API DType default_dtype(const Scalar& scalar) noexcept;

/// Writes the scalar as one element of `dtype` (8 bytes of room suffice). Throws ValueError, naming
/// `who`, for an integer that does not fit an integer dtype.
BAREGRAD_API void store_scalar(const Scalar& scalar, DType dtype, void* out, const char* who);
/// Reads one element of `dtype`.
BAREGRAD_API Scalar load_scalar(const void* data, DType dtype) noexcept;

}  // namespace baregrad

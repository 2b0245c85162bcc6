// Weak dtypes, range checks, loading and storing one element.
#include "baregrad/scalar.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "baregrad/error.h"
#include "core/message.h"
#include "core/visit.h"

namespace baregrad {

namespace {

template <class T>
T saturate(double value) noexcept {
  if (std::isnan(value)) return 0;
  // 2^63 and 2^64 are exact doubles; the greatest integers below them are not.
  if (value >= std::ldexp(1.0, std::numeric_limits<T>::digits)) {
    return std::numeric_limits<T>::max();
  }
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  return static_cast<T>(value);
}

template <class T>
bool fits(const Scalar& s) noexcept {
  if (s.kind() == Scalar::Kind::UInt) {
    return s.to_uint64() <= static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  }
  const std::int64_t v = s.to_int64();
  if constexpr (std::is_unsigned_v<T>) {
    return v >= 0 && static_cast<std::uint64_t>(v) <= std::numeric_limits<T>::max();
  } else {
    return v >= std::numeric_limits<T>::min() && v <= std::numeric_limits<T>::max();
  }
}

}  // namespace

std::int64_t Scalar::to_int64() const noexcept {
  if (kind_ == Kind::Float) return saturate<std::int64_t>(float_);
  return kind_ == Kind::UInt ? static_cast<std::int64_t>(uint_) : int_;
}

std::uint64_t Scalar::to_uint64() const noexcept {
  if (kind_ == Kind::Float) return saturate<std::uint64_t>(float_);
  return kind_ == Kind::UInt ? uint_ : static_cast<std::uint64_t>(int_);
}

DType weak_dtype(const Scalar& scalar, DType dtype) noexcept {
  switch (scalar.kind()) {
    case Scalar::Kind::Bool:
      return dtype;
    case Scalar::Kind::Int:
    case Scalar::Kind::UInt:
      return is_bool(dtype) ? default_dtype(scalar) : dtype;
    case Scalar::Kind::Float:
      break;
  }
  return is_floating(dtype) ? dtype : kDefaultFloat;
}

DType default_dtype(const Scalar& scalar) noexcept {
  switch (scalar.kind()) {
    case Scalar::Kind::Bool:
      return DType::Bool;
    case Scalar::Kind::Int:
      return DType::Int64;
    case Scalar::Kind::UInt:
      return scalar.to_uint64() > static_cast<std::uint64_t>(INT64_MAX) ? DType::UInt64
                                                                        : DType::Int64;
    case Scalar::Kind::Float:
      break;
  }
  return kDefaultFloat;
}

void store_scalar(const Scalar& scalar, DType dtype, void* out, const char* who) {
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    T value{};
    if constexpr (std::is_same_v<T, bool>) {
      value = scalar.to_bool();
    } else if constexpr (std::is_integral_v<T>) {
      if (scalar.kind() == Scalar::Kind::Float) {
        value = saturate<T>(scalar.to_double());
      } else if (!fits<T>(scalar)) {
        throw ValueError(message(who, ": ",
                                 scalar.kind() == Scalar::Kind::UInt
                                     ? std::to_string(scalar.to_uint64())
                                     : std::to_string(scalar.to_int64()),
                                 " does not fit ", name(dtype)));
      } else {
        value = static_cast<T>(scalar.to_uint64());
      }
    } else {
      value = static_cast<T>(scalar.to_double());
    }
    std::memcpy(out, &value, sizeof value);
  });
}

Scalar load_scalar(const void* data, DType dtype) noexcept {
  return visit_dtype(dtype, [&]<class T>(TypeTag<T>) -> Scalar {
    if constexpr (std::is_same_v<T, bool>) {
      std::uint8_t byte = 0;
      std::memcpy(&byte, data, 1);
      return Scalar(byte != 0);
    } else {
      T value{};
      std::memcpy(&value, data, sizeof value);
      if constexpr (std::is_integral_v<T> || std::is_floating_point_v<T>) {
        return Scalar(value);
      } else {
        return Scalar(static_cast<float>(value));
      }
    }
  });
}

}  // namespace baregrad

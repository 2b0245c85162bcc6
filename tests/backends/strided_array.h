// An array of any dtype and layout, for tests of kernels that walk views.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/abi.h"
#include "backends/cpu/table.h"
#include "core/visit.h"

namespace baregrad::test {

using kernels::View;
using Shape = std::vector<std::int64_t>;

inline constexpr DType kAllDTypes[] = {
    DType::Bool,     DType::Int8,    DType::Int16,  DType::Int32,  DType::Int64,
    DType::UInt8,    DType::UInt16,  DType::UInt32, DType::UInt64, DType::Float16,
    DType::BFloat16, DType::Float32, DType::Float64};

inline std::int64_t product(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

/// A number of any dtype, without rounding: integers keep all 64 bits.
struct Number {
  long double real = 0;
  std::uint64_t bits = 0;  ///< two's complement of integers
};

inline Number load_number(DType dtype, const void* at) {
  return visit_dtype(dtype, [&]<class T>(TypeTag<T>) -> Number {
    if constexpr (std::is_same_v<T, bool>) {
      std::uint8_t byte;
      std::memcpy(&byte, at, 1);
      return {static_cast<long double>(byte != 0), byte != 0 ? 1U : 0U};
    } else {
      T value;
      std::memcpy(&value, at, sizeof(T));
      if constexpr (std::is_integral_v<T>) {
        return {static_cast<long double>(value), static_cast<std::uint64_t>(value)};
      } else {
        return {static_cast<long double>(static_cast<double>(value)), 0};
      }
    }
  });
}

inline void store_number(DType dtype, void* at, double value) {
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_same_v<T, bool>) {
      const std::uint8_t byte = value != 0 ? 1 : 0;
      std::memcpy(at, &byte, 1);
    } else {
      const T typed = std::is_integral_v<T> && value < 0
                          ? static_cast<T>(static_cast<std::int64_t>(value))
                          : static_cast<T>(value);
      std::memcpy(at, &typed, sizeof(T));
    }
  });
}

enum class LayoutKind { Contiguous, Transposed, Reversed, EverySecond, Repeated, Misaligned };
inline constexpr LayoutKind kLayouts[] = {LayoutKind::Contiguous, LayoutKind::Transposed,
                                          LayoutKind::Reversed,   LayoutKind::EverySecond,
                                          LayoutKind::Repeated,   LayoutKind::Misaligned};

/// Owns exactly the bytes that its elements span, so that ASan detects any access outside them.
class StridedArray {
 public:
  StridedArray(DType dtype, Shape shape, LayoutKind kind = LayoutKind::Contiguous)
      : dtype_(dtype), shape_(std::move(shape)), strides_(shape_.size()) {
    const int ndim = static_cast<int>(shape_.size());
    const std::int64_t step = kind == LayoutKind::EverySecond ? 2 : 1;
    std::int64_t stride = step;
    for (int k = 0; k < ndim; ++k) {
      const int i = kind == LayoutKind::Transposed ? k : ndim - 1 - k;
      const bool repeated = kind == LayoutKind::Repeated && i % 2 == 0;
      strides_[static_cast<std::size_t>(i)] = repeated ? 0 : stride;
      if (!repeated) stride *= shape_[static_cast<std::size_t>(i)];
    }
    std::int64_t last = 0;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < shape_.size(); ++i) {
      if (kind == LayoutKind::Reversed) strides_[i] = -strides_[i];
      (strides_[i] < 0 ? first : last) += (shape_[i] - 1) * strides_[i];
    }
    const std::size_t shift = kind == LayoutKind::Misaligned ? 1 : 0;
    const bool empty = product(shape_) == 0;
    const auto count = static_cast<std::size_t>(empty ? 0 : last - first + 1);
    bytes_.resize(count * itemsize(dtype) + shift);
    data_ =
        bytes_.data() + shift + (empty ? 0 : static_cast<std::size_t>(-first) * itemsize(dtype));
  }

  View view() {
    return {data_, dtype_, static_cast<int>(shape_.size()), shape_.data(), strides_.data()};
  }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t numel() const { return product(shape_); }

  /// The element at a row-major position.
  char* at(std::int64_t position) {
    std::int64_t offset = 0;
    for (std::size_t i = shape_.size(); i-- > 0;) {
      offset += position % shape_[i] * strides_[i];
      position /= shape_[i];
    }
    return data_ + offset * static_cast<std::int64_t>(itemsize(dtype_));
  }
  Number number(std::int64_t position) { return load_number(dtype_, at(position)); }
  double real(std::int64_t position) { return static_cast<double>(number(position).real); }
  void set(std::int64_t position, double value) { store_number(dtype_, at(position), value); }

  StridedArray& fill_random(std::uint32_t seed, double low, double high) {
    std::mt19937 rng(seed);
    std::uniform_real_distribution<double> value(low, high);
    for (std::int64_t i = 0; i < numel(); ++i) {
      double v = value(rng);
      if (!is_floating(dtype_)) v = std::floor(is_unsigned_int(dtype_) ? std::abs(v) : v);
      if (is_bool(dtype_)) v = rng() % 3 == 0 ? 0 : 1;
      set(i, v);
    }
    return *this;
  }
  const std::vector<char>& bytes() const { return bytes_; }

 private:
  DType dtype_;
  Shape shape_;
  Shape strides_;
  std::vector<char> bytes_;
  char* data_ = nullptr;
};

/// x's shape, with size 1 for the axes of the mask.
inline Shape reduced_shape(Shape shape, std::uint32_t mask) {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if ((mask >> i & 1) != 0) shape[i] = 1;
  }
  return shape;
}

/// For every output position, the row-major positions of x that it reduces.
inline std::vector<Shape> groups(const Shape& shape, std::uint32_t mask) {
  std::vector<Shape> result(static_cast<std::size_t>(product(reduced_shape(shape, mask))));
  for (std::int64_t p = 0; p < product(shape); ++p) {
    std::int64_t rest = p;
    std::int64_t out = 0;
    std::int64_t stride = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
      if ((mask >> i & 1) == 0) {
        out += rest % shape[i] * stride;
        stride *= shape[i];
      }
      rest /= shape[i];
    }
    result[static_cast<std::size_t>(out)].push_back(p);
  }
  return result;
}

/// Distance from the exact value in units of the last place of the result's `dtype`.
inline long double ulp_error(DType dtype, double got, long double want) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) == std::isnan(want) ? 0 : 1e30L;
  if (std::isinf(got) || std::isinf(want)) return got == static_cast<double>(want) ? 0 : 1e30L;
  const int digits = dtype == DType::Float16    ? 11
                     : dtype == DType::BFloat16 ? 8
                     : dtype == DType::Float32  ? 24
                                                : 53;
  const int least = dtype == DType::Float16 ? -24 : dtype == DType::Float64 ? -1074 : -149;
  const int exponent = want == 0 ? -2000 : std::ilogb(want);
  const long double ulp = std::ldexp(1.0L, std::max(exponent - digits + 1, least));
  return std::abs(static_cast<long double>(got) - want) / ulp;
}

inline std::string describe(const char* op, DType dtype, const Shape& shape, LayoutKind kind,
                            std::uint32_t mask) {
  std::string text = std::string(op) + " of " + std::string(name(dtype)) + "[";
  for (const std::int64_t n : shape) text += std::to_string(n) + ",";
  return text + "] layout " + std::to_string(static_cast<int>(kind)) + " axes mask " +
         std::to_string(mask) + " on " + std::string(kernels::isa_name(kernels::active_isa()));
}

}  // namespace baregrad::test

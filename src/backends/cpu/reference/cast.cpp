// Casts one element at a time, by the rules of the kernel contract written out.
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "backends/cpu/reference/reference.h"
#include "core/visit.h"

namespace baregrad::kernels::reference {

namespace {

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

/// An element as a number C++ can compute with; any non-zero byte is a true bool.
template <class T>
auto read(const void* data, std::int64_t i) {
  if constexpr (std::is_same_v<T, bool>)
    return static_cast<const std::uint8_t*>(data)[i] != 0;
  else if constexpr (kIsHalf<T>)
    return static_cast<float>(static_cast<const T*>(data)[i]);
  else
    return static_cast<const T*>(data)[i];
}

/// A double that narrows to the same value as the integer itself: exact, or with an odd last bit
/// where digits were dropped (round to odd).
template <class Int>
double double_rounded_to_odd(Int value) {
  const bool negative = value < 0;
  auto magnitude = static_cast<std::uint64_t>(value);
  if (negative) magnitude = 0 - magnitude;
  int dropped = 0;
  for (; magnitude >> 53 != 0; ++dropped) magnitude = (magnitude >> 1) | (magnitude & 1);
  const double result = std::ldexp(static_cast<double>(magnitude), dropped);
  return negative ? -result : result;
}

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (kIsHalf<To>) {
    if constexpr (std::is_integral_v<From> && sizeof(From) == 8)
      return To(double_rounded_to_odd(value));
    else
      return To(static_cast<double>(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(value)) return 0;
    // The bounds are one beyond the range: powers of two, which every float type can represent.
    const From end = std::ldexp(From{1}, std::numeric_limits<To>::digits);
    if (value >= end) return std::numeric_limits<To>::max();
    if (value <= (std::is_signed_v<To> ? -end : From{0})) return std::numeric_limits<To>::min();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class From, class To>
void cast(const void* in, void* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<From, To> && !std::is_same_v<From, bool>) {
      static_cast<To*>(out)[i] = static_cast<const From*>(in)[i];
    } else {
      static_cast<To*>(out)[i] = convert<To>(read<From>(in, i));
    }
  }
}

}  // namespace

void register_casts(KernelTable& table) {
  for (int from = 0; from < kNumDTypes; ++from) {
    for (int to = 0; to < kNumDTypes; ++to) {
      visit_dtype(static_cast<DType>(from), [&]<class From>(TypeTag<From>) {
        visit_dtype(static_cast<DType>(to),
                    [&]<class To>(TypeTag<To>) { table.cast[from][to] = &cast<From, To>; });
      });
    }
  }
}

}  // namespace baregrad::kernels::reference

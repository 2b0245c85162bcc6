// Test values for kernels: the edges of every type, and random values from a fixed seed.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "baregrad/half.h"

namespace baregrad::test {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

/// The storage type of T: bools are bytes.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

template <class T>
std::vector<Stored<T>> edge_values() {
  if constexpr (std::is_same_v<T, bool>) {
    return {0, 1};
  } else if constexpr (std::is_floating_point_v<T>) {
    using Limits = std::numeric_limits<T>;
    std::vector<T> values = {T(0),
                             T(-0.0),
                             T(1),
                             T(-1),
                             T(0.5),
                             T(-0.5),
                             T(1.5),
                             T(2.5),
                             T(-2.5),
                             T(3),
                             T(-3),
                             T(6),
                             T(7),
                             T(-7.25),
                             T(1e-3),
                             T(20),
                             T(-20),
                             T(100.25),
                             T(-100.25),
                             T(1e10),
                             T(-1e10),
                             T(8388607.5),
                             T(8388609),
                             T(4503599627370497.5),
                             Limits::max(),
                             Limits::lowest(),
                             Limits::min(),
                             -Limits::min(),
                             Limits::denorm_min(),
                             -Limits::denorm_min(),
                             Limits::infinity(),
                             -Limits::infinity(),
                             Limits::quiet_NaN(),
                             -Limits::quiet_NaN()};
    if constexpr (std::is_same_v<T, float>) {
      values.push_back(std::bit_cast<float>(0x3effffffu));  // just below 0.5
    } else {
      values.push_back(std::bit_cast<double>(0x3fdfffffffffffffULL));
    }
    return values;
  } else {
    using Limits = std::numeric_limits<T>;
    constexpr int kWidth = 8 * sizeof(T);
    return {T(0),
            T(1),
            T(2),
            T(3),
            T(5),
            T(7),
            T(-1),
            T(-2),
            T(-3),
            T(-7),
            T(kWidth - 1),
            T(kWidth),
            T(kWidth + 1),
            T(100),
            Limits::max(),
            T(Limits::max() - 1),
            Limits::min(),
            T(Limits::min() + 1),
            T(Limits::max() / 2 + 1)};
  }
}

template <class T>
Stored<T> random_value(std::mt19937_64& rng) {
  if constexpr (std::is_same_v<T, bool>) {
    return static_cast<std::uint8_t>(rng() & 1);
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    // Half of them of ordinary magnitude, the others any bit pattern but NaN, which the edges
    // include.
    if (rng() & 1) return static_cast<T>(std::uniform_real_distribution<double>(-12, 12)(rng));
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const T value = std::bit_cast<T>(static_cast<Bits>(rng()));
    return value == value ? value : T(2);
  } else if constexpr (kIsHalf<T>) {
    return T::from_bits(static_cast<std::uint16_t>(rng()));
  } else {
    // Small ones too: random 64-bit integers are almost always large.
    const int drop = static_cast<int>(rng() % (8 * sizeof(T)));
    return static_cast<T>(static_cast<T>(rng()) >> drop);
  }
}

}  // namespace baregrad::test

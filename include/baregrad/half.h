// Storage types of the two 16-bit floats: bits and exact conversions, no arithmetic.
#pragma once

#include <bit>
#include <cstdint>

namespace baregrad {

namespace detail {

/// IEEE binary64 to a narrower binary float of `kExp` exponent and `kMan` mantissa bits, rounded
/// once to nearest-even; works for every input, so float and double take the same road.
template <int kExp, int kMan>
constexpr std::uint16_t narrow_float(double value) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  constexpr int kBias = (1 << (kExp - 1)) - 1;
  constexpr std::uint32_t kInf = ((1u << kExp) - 1u) << kMan;
  const auto sign = static_cast<std::uint32_t>(bits >> 63) << 15;
  const auto exponent = static_cast<int>((bits >> 52) & 0x7ff);
  const std::uint64_t mantissa = bits & 0xfffffffffffffULL;
  if (exponent == 0x7ff) {
    const std::uint32_t quiet = mantissa == 0 ? 0u : 1u << (kMan - 1);
    const auto payload = static_cast<std::uint32_t>(mantissa >> (52 - kMan));
    return static_cast<std::uint16_t>(sign | kInf | quiet | payload);
  }
  const int e = exponent - 1023 + kBias;
  // Below the normal range the significand is shifted further right; its lowest bits stay sticky.
  const int shift = 52 - kMan + (e > 0 ? 0 : 1 - e);
  if (shift > 53) return static_cast<std::uint16_t>(sign);
  const std::uint64_t significand = exponent == 0 ? mantissa : mantissa | (1ULL << 52);
  const std::uint64_t kept = significand >> shift;
  const std::uint64_t rest = significand & ((1ULL << shift) - 1);
  const std::uint64_t half = 1ULL << (shift - 1);
  const bool up = rest > half || (rest == half && (kept & 1) != 0);
  // `kept` carries the implicit bit, which the exponent field absorbs by starting one lower.
  const std::uint64_t base = e > 0 ? static_cast<std::uint64_t>(e - 1) << kMan : 0;
  const std::uint64_t rounded = base + kept + (up ? 1 : 0);
  return static_cast<std::uint16_t>(sign | (rounded >= kInf ? kInf : rounded));
}

}  // namespace detail

/// IEEE binary16.
struct Float16 {
  std::uint16_t bits = 0;

  constexpr Float16() = default;
  constexpr explicit Float16(double value) noexcept : bits(detail::narrow_float<5, 10>(value)) {}
  static constexpr Float16 from_bits(std::uint16_t bits) noexcept {
    Float16 h;
    h.bits = bits;
    return h;
  }
  constexpr explicit operator float() const noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t rest = bits & 0x7fffu;
    if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
    if (rest >= 0x400u) return std::bit_cast<float>(sign | ((rest << 13) + (112u << 23)));
    const float magnitude = static_cast<float>(rest) * 0x1p-24f;  // subnormal: exact in float
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  constexpr explicit operator double() const noexcept { return static_cast<float>(*this); }
};

/// The upper half of an IEEE binary32.
struct BFloat16 {
  std::uint16_t bits = 0;

  constexpr BFloat16() = default;
  constexpr explicit BFloat16(double value) noexcept : bits(detail::narrow_float<8, 7>(value)) {}
  static constexpr BFloat16 from_bits(std::uint16_t bits) noexcept {
    BFloat16 h;
    h.bits = bits;
    return h;
  }
  constexpr explicit operator float() const noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  constexpr explicit operator double() const noexcept { return static_cast<float>(*this); }
};

}  // namespace baregrad

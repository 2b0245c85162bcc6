// Rounding of integers, and splits into nearly equal parts.
//
// Everything here is always inlined, so that files compiled for one instruction set may use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace baregrad {

/// x / d, rounded up; d > 0.
template <class T>
[[gnu::always_inline]] constexpr T ceil_div(T x, std::type_identity_t<T> d) noexcept {
  return x / d + (x % d > 0 ? 1 : 0);
}

/// The smallest multiple of `unit` that is not less than x; unit > 0.
template <class T>
[[gnu::always_inline]] constexpr T round_up(T x, std::type_identity_t<T> unit) noexcept {
  return ceil_div(x, unit) * unit;
}

/// The same for sizes in bytes, without a division.
[[gnu::always_inline]] constexpr std::size_t align_up(std::size_t bytes,
                                                      std::size_t power_of_two) noexcept {
  return (bytes + power_of_two - 1) & ~(power_of_two - 1);
}

/// [0, total) cut into `count` contiguous parts whose sizes differ by at most one; the larger parts
/// come first. Two rows left over after many tiles of fourteen would run at a seventh of the speed.
class EvenSplit {
 public:
  [[gnu::always_inline]] static constexpr EvenSplit into_parts(std::int64_t total,
                                                               std::int64_t parts) noexcept {
    return {parts, total / parts, total % parts};
  }
  /// The fewest parts of which none is larger than `most`; one empty part when total is 0.
  [[gnu::always_inline]] static constexpr EvenSplit of_at_most(std::int64_t total,
                                                               std::int64_t most) noexcept {
    return into_parts(total, total == 0 ? 1 : ceil_div(total, most));
  }

  [[gnu::always_inline]] constexpr std::int64_t begin(std::int64_t part) const noexcept {
    return part * smaller_size + (part < larger_parts ? part : larger_parts);
  }
  [[gnu::always_inline]] constexpr std::int64_t size(std::int64_t part) const noexcept {
    return smaller_size + (part < larger_parts ? 1 : 0);
  }
  [[gnu::always_inline]] constexpr std::int64_t end(std::int64_t part) const noexcept {
    return begin(part) + size(part);
  }
  [[gnu::always_inline]] constexpr std::int64_t largest() const noexcept { return size(0); }

  std::int64_t count;
  std::int64_t smaller_size;
  std::int64_t larger_parts;

 private:
  [[gnu::always_inline]] constexpr EvenSplit(std::int64_t parts, std::int64_t smaller,
                                             std::int64_t larger) noexcept
      : count(parts), smaller_size(smaller), larger_parts(larger) {}
};

}  // namespace baregrad

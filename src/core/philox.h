// Philox 4x32-10, the counter-based generator of Salmon et al. (2011): 128 random bits for every
// value of a 128-bit counter, under a 64-bit key. It has no state: any block can be computed
// directly.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "baregrad/generator.h"

namespace baregrad {

inline constexpr int kPhiloxRounds = 10;
inline constexpr std::uint32_t kPhiloxMultipliers[2] = {0xD2511F53U, 0xCD9E8D57U};
inline constexpr std::uint32_t kPhiloxWeyl[2] = {0x9E3779B9U, 0xBB67AE85U};

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

inline void philox_round(std::uint32_t& c0, std::uint32_t& c1, std::uint32_t& c2, std::uint32_t& c3,
                         const PhiloxKey& key) noexcept {
  const std::uint64_t p0 = std::uint64_t{kPhiloxMultipliers[0]} * c0;
  const std::uint64_t p1 = std::uint64_t{kPhiloxMultipliers[1]} * c2;
  c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ key[0];
  c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ key[1];
  c1 = static_cast<std::uint32_t>(p1);
  c3 = static_cast<std::uint32_t>(p0);
}

inline PhiloxKey philox_next_key(const PhiloxKey& key) noexcept {
  return {key[0] + kPhiloxWeyl[0], key[1] + kPhiloxWeyl[1]};
}

/// The random block of one counter.
inline PhiloxCounter philox(PhiloxCounter c, PhiloxKey key) noexcept {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    philox_round(c[0], c[1], c[2], c[3], key);
    key = philox_next_key(key);
  }
  return c;
}

/// Blocks computed side by side: a vector of baseline width.
inline constexpr int kPhiloxLanes = 4;

/// The blocks of kPhiloxLanes counters from (low, high) on; low must not wrap in between.
inline void philox_group(std::uint64_t low, std::uint32_t high, PhiloxKey key,
                         std::uint32_t* out) noexcept {
  std::uint32_t c0[kPhiloxLanes];
  std::uint32_t c1[kPhiloxLanes];
  std::uint32_t c2[kPhiloxLanes];
  std::uint32_t c3[kPhiloxLanes];
  for (int i = 0; i < kPhiloxLanes; ++i) {
    const std::uint64_t lane = low + static_cast<std::uint64_t>(i);
    c0[i] = static_cast<std::uint32_t>(lane);
    c1[i] = static_cast<std::uint32_t>(lane >> 32);
    c2[i] = high;
    c3[i] = 0;
  }
  for (int round = 0; round < kPhiloxRounds; ++round) {
    for (int i = 0; i < kPhiloxLanes; ++i) philox_round(c0[i], c1[i], c2[i], c3[i], key);
    key = philox_next_key(key);
  }
  for (int i = 0; i < kPhiloxLanes; ++i) {
    out[4 * i] = c0[i];
    out[4 * i + 1] = c1[i];
    out[4 * i + 2] = c2[i];
    out[4 * i + 3] = c3[i];
  }
}

/// Blocks first .. first + count - 1 after the state's position, four words each. The seed is the
/// key; position + block, carried into the upper half, is the counter.
inline void philox_blocks(const Generator::State& state, std::uint64_t first, std::int64_t count,
                          std::uint32_t* out) noexcept {
  const PhiloxKey key = {static_cast<std::uint32_t>(state.seed),
                         static_cast<std::uint32_t>(state.seed >> 32)};
  const std::uint64_t start = state.position + first;
  const std::uint32_t carry = start < first ? 1 : 0;
  std::int64_t done = 0;
  // A counted loop without branches, which the compiler vectorises.
  if (start + static_cast<std::uint64_t>(count) > start) {
    for (; count - done >= kPhiloxLanes; done += kPhiloxLanes) {
      philox_group(start + static_cast<std::uint64_t>(done), carry, key, out + done * 4);
    }
  }
  for (; done < count; ++done) {
    const std::uint64_t low = start + static_cast<std::uint64_t>(done);
    const std::uint32_t high = carry + (low < start ? 1 : 0);
    const PhiloxCounter block = philox(
        {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), high, 0}, key);
    std::copy(block.begin(), block.end(), out + done * 4);
  }
}

}  // namespace baregrad

// Philox 4x32-10, the counter-based generator of Salmon et al. (2011): 128 random bits for every
// value of a 128-bit counter, under a 64-bit key. No state: any block can be computed at any time.
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

/// Blocks computed side by side: four vectors of baseline width, enough to hide the multiplier.
inline constexpr int kPhiloxLanes = 8;

/// One word of the counter, lane by lane.
using PhiloxWords = std::uint32_t[kPhiloxLanes];

/// The counters in c0..c3 replaced by their random bits.
inline void philox_lanes(PhiloxWords& c0, PhiloxWords& c1, PhiloxWords& c2, PhiloxWords& c3,
                         PhiloxKey key) noexcept {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    for (int i = 0; i < kPhiloxLanes; ++i) {
      const std::uint64_t p0 = std::uint64_t{kPhiloxMultipliers[0]} * c0[i];
      const std::uint64_t p1 = std::uint64_t{kPhiloxMultipliers[1]} * c2[i];
      c0[i] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[i] ^ key[0];
      c2[i] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[i] ^ key[1];
      c1[i] = static_cast<std::uint32_t>(p1);
      c3[i] = static_cast<std::uint32_t>(p0);
    }
    key[0] += kPhiloxWeyl[0];
    key[1] += kPhiloxWeyl[1];
  }
}

/// The random block of one counter.
inline PhiloxCounter philox(const PhiloxCounter& counter, const PhiloxKey& key) noexcept {
  PhiloxWords c[4] = {};
  for (std::size_t w = 0; w < 4; ++w) c[w][0] = counter[w];
  philox_lanes(c[0], c[1], c[2], c[3], key);
  return {c[0][0], c[1][0], c[2][0], c[3][0]};
}

/// Blocks first .. first + count - 1 after the state's position, four words each. The seed is the
/// key; position + block, carried into the upper half, is the counter.
inline void philox_blocks(const Generator::State& state, std::uint64_t first, std::int64_t count,
                          std::uint32_t* out) noexcept {
  const PhiloxKey key = {static_cast<std::uint32_t>(state.seed),
                         static_cast<std::uint32_t>(state.seed >> 32)};
  for (std::int64_t done = 0; done < count; done += kPhiloxLanes) {
    PhiloxWords c0, c1, c2, c3;
    for (int i = 0; i < kPhiloxLanes; ++i) {
      const std::uint64_t block = first + static_cast<std::uint64_t>(done + i);
      const std::uint64_t low = state.position + block;
      c0[i] = static_cast<std::uint32_t>(low);
      c1[i] = static_cast<std::uint32_t>(low >> 32);
      c2[i] = low < block ? 1 : 0;
      c3[i] = 0;
    }
    philox_lanes(c0, c1, c2, c3, key);
    const auto lanes = static_cast<int>(std::min<std::int64_t>(kPhiloxLanes, count - done));
    for (int i = 0; i < lanes; ++i) {
      std::uint32_t* block = out + (done + i) * 4;
      block[0] = c0[i];
      block[1] = c1[i];
      block[2] = c2[i];
      block[3] = c3[i];
    }
  }
}

}  // namespace baregrad

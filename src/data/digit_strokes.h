// The shapes of the digits: pen strokes in a box of 100 by 100, y pointing down. A curve runs
// smoothly through its points; a point that is given twice is a corner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace baregrad::data {

struct PenPoint {
  std::int8_t x, y;
  friend constexpr bool operator==(const PenPoint&, const PenPoint&) = default;
};

inline constexpr PenPoint kLift = {-1, 0};   // between two strokes of a variant
inline constexpr PenPoint kWay = {-2, 0};    // at the end of each variant of a digit
inline constexpr PenPoint kDigit = {-3, 0};  // after all variants of a digit

// clang-format off
inline constexpr PenPoint kStrokes[] = {
    // 0: closed; with the ends crossing; narrow
    {50, 0}, {22, 10}, {8, 50}, {22, 90}, {50, 100}, {78, 90}, {92, 50}, {78, 10}, {50, 0},
      {40, 3}, kWay,
    {62, 4}, {30, 10}, {12, 45}, {20, 88}, {52, 100}, {82, 82}, {90, 40}, {72, 8}, {42, 2},
      {30, 12}, kWay,
    {55, 0}, {34, 15}, {26, 55}, {38, 93}, {56, 98}, {72, 80}, {76, 40}, {64, 6}, {52, 0}, kWay,
    kDigit,
    // 1: a bar, a bar with a flag, with a foot, bent
    {52, 0}, {50, 50}, {48, 100}, kWay,
    {20, 26}, {40, 15}, {56, 0}, {56, 0}, {55, 50}, {54, 100}, kWay,
    {28, 20}, {52, 0}, {52, 0}, {52, 100}, kLift, {20, 100}, {50, 99}, {84, 100}, kWay,
    {56, 0}, {47, 35}, {46, 70}, {54, 100}, kWay,
    kDigit,
    // 2: with a corner, with a loop, straight-necked
    {10, 26}, {24, 6}, {55, 0}, {82, 14}, {82, 38}, {55, 66}, {10, 98}, {10, 98}, {50, 97},
      {95, 100}, kWay,
    {14, 22}, {34, 3}, {66, 3}, {84, 24}, {70, 55}, {38, 88}, {14, 96}, {10, 82}, {28, 76},
      {56, 92}, {96, 94}, kWay,
    {8, 8}, {45, 0}, {82, 12}, {76, 42}, {40, 75}, {8, 100}, {8, 100}, {92, 94}, kWay,
    kDigit,
    // 3: round, flat-topped, with a small loop at the waist
    {12, 13}, {40, 0}, {74, 8}, {76, 33}, {40, 47}, {40, 47}, {78, 56}, {88, 78}, {58, 100},
      {10, 88}, kWay,
    {10, 3}, {50, 2}, {86, 2}, {86, 2}, {42, 42}, {42, 42}, {78, 50}, {90, 76}, {56, 100},
      {8, 90}, kWay,
    {16, 10}, {50, 0}, {78, 16}, {66, 40}, {42, 50}, {36, 44}, {50, 43}, {82, 60}, {80, 88},
      {48, 100}, {14, 92}, kWay,
    kDigit,
    // 4: open, closed, in one go
    {20, 0}, {15, 30}, {10, 55}, {10, 55}, {50, 55}, {92, 52}, kLift, {74, 6}, {70, 50},
      {68, 100}, kWay,
    {66, 0}, {35, 32}, {6, 64}, {6, 64}, {50, 64}, {95, 62}, kLift, {66, 0}, {66, 50}, {65, 100},
      kWay,
    {16, 4}, {14, 36}, {30, 52}, {60, 46}, {78, 5}, {78, 5}, {74, 50}, {72, 100}, kWay,
    kDigit,
    // 5: in one go, the hat on its own, round-shouldered
    {86, 2}, {50, 2}, {26, 3}, {26, 3}, {20, 42}, {20, 42}, {50, 36}, {84, 52}, {84, 82},
      {50, 100}, {10, 90}, kWay,
    {24, 6}, {20, 24}, {18, 44}, {18, 44}, {56, 38}, {88, 60}, {74, 92}, {38, 100}, {8, 92},
      kLift, {24, 5}, {55, 4}, {90, 0}, kWay,
    {78, 0}, {40, 4}, {24, 20}, {32, 40}, {66, 50}, {80, 74}, {56, 97}, {14, 94}, kWay,
    kDigit,
    // 6: curled in, closed at the stem, upright
    {74, 3}, {40, 20}, {15, 55}, {17, 86}, {50, 100}, {82, 86}, {80, 60}, {50, 50}, {20, 68}, kWay,
    {62, 0}, {30, 28}, {12, 66}, {28, 96}, {62, 98}, {82, 76}, {66, 54}, {34, 56}, {14, 74}, kWay,
    {40, 0}, {22, 30}, {16, 70}, {34, 97}, {66, 96}, {80, 74}, {60, 55}, {32, 62}, {22, 80}, kWay,
    kDigit,
    // 7: plain, with a bar, with a serif and a bent stem
    {8, 4}, {50, 3}, {90, 2}, {90, 2}, {62, 50}, {42, 100}, kWay,
    {8, 5}, {50, 3}, {90, 3}, {90, 3}, {60, 50}, {40, 100}, kLift, {28, 50}, {55, 50}, {84, 48},
      kWay,
    {10, 20}, {12, 4}, {12, 4}, {50, 6}, {90, 2}, {90, 2}, {66, 30}, {52, 62}, {50, 100}, kWay,
    kDigit,
    // 8: in one go, two rings, open at the top
    {76, 16}, {50, 0}, {22, 15}, {30, 38}, {68, 60}, {82, 82}, {50, 100}, {18, 82}, {30, 60},
      {68, 40}, {77, 18}, {70, 7}, kWay,
    {50, 2}, {26, 10}, {26, 36}, {50, 46}, {74, 36}, {74, 10}, {50, 2}, kLift, {50, 47}, {20, 60},
      {20, 88}, {50, 100}, {80, 88}, {80, 60}, {50, 47}, kWay,
    {84, 6}, {55, 2}, {24, 12}, {34, 40}, {66, 62}, {74, 86}, {46, 100}, {20, 84}, {36, 60},
      {66, 36}, {90, 2}, kWay,
    kDigit,
    // 9: straight-legged, curled, in one go
    {80, 20}, {52, 0}, {18, 16}, {24, 44}, {56, 48}, {80, 20}, {80, 20}, {77, 60}, {72, 100}, kWay,
    {80, 24}, {56, 2}, {20, 16}, {26, 46}, {60, 46}, {80, 24}, {80, 24}, {84, 64}, {62, 96},
      {18, 94}, kWay,
    {76, 10}, {44, 2}, {16, 26}, {36, 50}, {70, 36}, {80, 10}, {74, 50}, {58, 100}, kWay,
    kDigit,
};
// clang-format on

/// The number of variants of `digit`.
constexpr std::uint32_t count_writings(int digit) {
  std::uint32_t ways = 0;
  for (const PenPoint& point : kStrokes) {
    if (point == kDigit) --digit;
    if (digit == 0 && point == kWay) ++ways;
  }
  return ways;
}

/// Variant `way` of `digit`: its points, with kLift between strokes.
constexpr std::span<const PenPoint> writing(int digit, std::uint32_t way) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < std::size(kStrokes); ++i) {
    if (digit == 0 && kStrokes[i] == kWay) {
      if (way == 0) return std::span(kStrokes).subspan(first, i - first);
      --way;
    }
    if (kStrokes[i] == kDigit) --digit;
    if (kStrokes[i] == kDigit || kStrokes[i] == kWay) first = i + 1;
  }
  return {};
}

}  // namespace baregrad::data

// Rounding, even splits, counting through multi-dimensional spaces, kinds of dtypes.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "core/dtype_kind.h"
#include "core/integer_math.h"
#include "core/multi_index.h"

namespace baregrad {
namespace {

TEST(IntegerMath, CeilDivIsTheLeastIntegerThatIsNotBelowTheQuotient) {
  for (std::int64_t x = -40; x <= 40; ++x) {
    for (std::int64_t d = 1; d <= 9; ++d) {
      const std::int64_t q = ceil_div(x, d);
      EXPECT_GE(q * d, x) << x << " / " << d;
      EXPECT_LT((q - 1) * d, x) << x << " / " << d;
    }
  }
  EXPECT_EQ(ceil_div(INT64_MAX, std::int64_t{2}), INT64_MAX / 2 + 1);
  EXPECT_EQ(ceil_div(SIZE_MAX, 2U), SIZE_MAX / 2 + 1);
}

TEST(IntegerMath, RoundUpIsTheLeastMultiple) {
  for (std::int64_t x = 0; x <= 70; ++x) {
    for (const std::int64_t unit : {1, 3, 8, 64}) {
      const std::int64_t r = round_up(x, unit);
      EXPECT_EQ(r % unit, 0);
      EXPECT_GE(r, x);
      EXPECT_LT(r - unit, x);
      if ((unit & (unit - 1)) == 0) {
        EXPECT_EQ(align_up(static_cast<std::size_t>(x), static_cast<std::size_t>(unit)),
                  static_cast<std::size_t>(r));
      }
    }
  }
}

void expect_even(const EvenSplit& split, std::int64_t total) {
  std::int64_t at = 0;
  for (std::int64_t part = 0; part < split.count; ++part) {
    EXPECT_EQ(split.begin(part), at);
    at += split.size(part);
    EXPECT_EQ(split.end(part), at);
    EXPECT_LE(split.size(part), split.largest());
    EXPECT_GE(split.size(part), split.largest() - 1);
    if (part > 0) {
      EXPECT_LE(split.size(part), split.size(part - 1));
    }
  }
  EXPECT_EQ(at, total);
}

TEST(EvenSplit, PartsCoverAllAndDifferByOneAtMost) {
  for (std::int64_t total = 0; total <= 60; ++total) {
    for (std::int64_t n = 1; n <= 17; ++n) {
      const EvenSplit parts = EvenSplit::into_parts(total, n);
      EXPECT_EQ(parts.count, n);
      expect_even(parts, total);
      const EvenSplit bounded = EvenSplit::of_at_most(total, n);
      EXPECT_LE(bounded.largest(), n);
      EXPECT_GE(bounded.count, 1);
      // No split with fewer parts stays within the bound.
      EXPECT_LE((bounded.count - 1) * n, total == 0 ? 0 : total - 1);
      expect_even(bounded, total);
    }
  }
}

TEST(MultiIndex, CountsInRowMajorOrder) {
  const std::vector<std::int64_t> shape = {3, 1, 4, 2};
  const std::vector<std::int64_t> strides = {7, 100, -3, 50};
  const auto size = [&](int axis) { return shape[static_cast<std::size_t>(axis)]; };
  std::vector<std::int64_t> expected;
  for (std::int64_t a = 0; a < 3; ++a) {
    for (std::int64_t c = 0; c < 4; ++c) {
      for (std::int64_t d = 0; d < 2; ++d) expected.push_back(a * 7 - c * 3 + d * 50);
    }
  }
  const auto total = static_cast<std::int64_t>(expected.size());
  for (std::int64_t first = 0; first < total; ++first) {
    std::int64_t index[4];
    std::int64_t offset = 0;
    const auto move = [&](int axis, std::int64_t steps) {
      offset += steps * strides[static_cast<std::size_t>(axis)];
    };
    move_to(4, first, size, move);
    EXPECT_EQ(offset, expected[static_cast<std::size_t>(first)]);
    offset = 0;
    set_index(index, 4, first, size, move);
    for (std::int64_t at = first; at < total; ++at) {
      EXPECT_EQ(offset, expected[static_cast<std::size_t>(at)]);
      EXPECT_EQ(next_index(index, 4, size, move), at + 1 < total);
    }
    EXPECT_EQ(offset, 0) << "after the last position comes the first";
  }
  std::int64_t none = 0;
  EXPECT_FALSE(next_index(&none, 0, size, [](int, std::int64_t) { FAIL(); }));
}

TEST(DTypeKinds, OfAll) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(is_half(dtype), is_floating(dtype) && itemsize(dtype) == 2);
    EXPECT_EQ(kind_of(dtype) == DTypeKind::Bool, is_bool(dtype));
    EXPECT_EQ(kind_of(dtype) == DTypeKind::Integer, is_integer(dtype));
    EXPECT_EQ(kind_of(dtype) == DTypeKind::Floating, is_floating(dtype));
  }
  EXPECT_LT(DTypeKind::Bool, DTypeKind::Integer);
  EXPECT_LT(DTypeKind::Integer, DTypeKind::Floating);
}

}  // namespace
}  // namespace baregrad

// Dims: positions are checked, negative ones count from the end.
#include <gtest/gtest.h>

#include "baregrad/dims.h"
#include "baregrad/error.h"
#include "tests/message_of.h"

namespace baregrad {
namespace {

TEST(Dims, PositionsCountFromBothEnds) {
  Dims dims = {2, 3, 5};
  EXPECT_EQ(dims[0], 2);
  EXPECT_EQ(dims[2], 5);
  EXPECT_EQ(dims[-1], 5);
  EXPECT_EQ(dims[-3], 2);
  EXPECT_EQ(dims[2U], 5);
  EXPECT_EQ(dims[std::size_t{1}], 3);
  dims[-1] = 7;
  EXPECT_EQ(dims, (Dims{2, 3, 7}));
  EXPECT_EQ(dims.back(), 7);
}

TEST(Dims, PositionsOutOfRangeThrow) {
  Dims dims = {2, 3, 5};
  const Dims& fixed = dims;
  for (const std::int64_t at : {std::int64_t{3}, std::int64_t{-4}, std::int64_t{15},
                                std::int64_t{16}, std::int64_t{1} << 32, INT64_MAX, INT64_MIN}) {
    EXPECT_THROW(static_cast<void>(fixed[at]), IndexError) << at;
    EXPECT_THROW(dims[at] = 1, IndexError) << at;
  }
  EXPECT_EQ(message_of<IndexError>([&] { static_cast<void>(fixed[5]); }),
            "dims: index 5 is out of range for 3 numbers");
  EXPECT_EQ(message_of<IndexError>([] { static_cast<void>(Dims{4}[-2]); }),
            "dims: index -2 is out of range for 1 number");
  EXPECT_THROW(static_cast<void>(Dims().back()), IndexError);
  EXPECT_THROW(static_cast<void>(Dims()[0]), IndexError);
  EXPECT_THROW(dims.erase(3), IndexError);
  EXPECT_THROW(dims.insert(4, 1), IndexError);
  EXPECT_THROW(dims.insert(-1, 1), IndexError);
  EXPECT_EQ(dims, (Dims{2, 3, 5}));
}

TEST(Dims, InsertAndErase) {
  Dims dims = {2, 3};
  dims.insert(2, 9);
  dims.insert(0, 1);
  EXPECT_EQ(dims, (Dims{1, 2, 3, 9}));
  dims.erase(0);
  dims.erase(-1);
  EXPECT_EQ(dims, (Dims{2, 3}));
}

}  // namespace
}  // namespace baregrad

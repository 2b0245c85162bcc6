// DType: names, sizes, promotion against the array API's tables written out.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "baregrad/dtype.h"
#include "baregrad/error.h"

namespace baregrad {
namespace {

constexpr DType kAll[] = {bool_,  int8,   int16,   int32,    int64,   uint8,  uint16,
                          uint32, uint64, float16, bfloat16, float32, float64};

TEST(DType, NamesRoundTrip) {
  for (const DType d : kAll) EXPECT_EQ(dtype_from_name(name(d)), d);
  EXPECT_EQ(name(DType::BFloat16), "bfloat16");
}

TEST(DType, UnknownNameListsTheKnown) {
  try {
    dtype_from_name("float8");
    FAIL();
  } catch (const DTypeError& e) {
    EXPECT_EQ(std::string(e.what()).rfind("dtype: unknown name 'float8'; known are bool, int8", 0),
              0U);
  }
}

TEST(DType, ItemSizesAreThoseOfTheTypes) {
  EXPECT_EQ(itemsize(bool_), 1U);
  EXPECT_EQ(itemsize(int8), sizeof(std::int8_t));
  EXPECT_EQ(itemsize(uint16), sizeof(std::uint16_t));
  EXPECT_EQ(itemsize(float16), sizeof(Float16));
  EXPECT_EQ(itemsize(bfloat16), sizeof(BFloat16));
  EXPECT_EQ(itemsize(float32), sizeof(float));
  EXPECT_EQ(itemsize(int64), sizeof(std::int64_t));
  EXPECT_EQ(itemsize(float64), sizeof(double));
}

// The upper triangle of the standard's table, row by row, and our additions for the undefined
// cells.
struct Promotion {
  DType a;
  DType b;
  DType result;
};
class Promote : public ::testing::TestWithParam<Promotion> {};
TEST_P(Promote, IsSymmetricAndAsTheTableSays) {
  const auto [a, b, result] = GetParam();
  EXPECT_EQ(promote(a, b), result);
  EXPECT_EQ(promote(b, a), result);
}
INSTANTIATE_TEST_SUITE_P(
    ArrayApi, Promote,
    ::testing::Values(Promotion{int8, int16, int16}, Promotion{int8, int32, int32},
                      Promotion{int8, int64, int64}, Promotion{int16, int32, int32},
                      Promotion{int16, int64, int64}, Promotion{int32, int64, int64},
                      Promotion{uint8, uint16, uint16}, Promotion{uint8, uint32, uint32},
                      Promotion{uint8, uint64, uint64}, Promotion{uint16, uint32, uint32},
                      Promotion{uint16, uint64, uint64}, Promotion{uint32, uint64, uint64},
                      Promotion{int8, uint8, int16}, Promotion{int8, uint16, int32},
                      Promotion{int8, uint32, int64}, Promotion{int16, uint8, int16},
                      Promotion{int16, uint16, int32}, Promotion{int16, uint32, int64},
                      Promotion{int32, uint8, int32}, Promotion{int32, uint16, int32},
                      Promotion{int32, uint32, int64}, Promotion{int64, uint8, int64},
                      Promotion{int64, uint16, int64}, Promotion{int64, uint32, int64},
                      Promotion{float32, float64, float64}, Promotion{float16, float32, float32},
                      Promotion{bfloat16, float32, float32}, Promotion{float16, bfloat16, float32},
                      Promotion{float16, float64, float64}, Promotion{int64, float16, float16},
                      Promotion{uint8, bfloat16, bfloat16}, Promotion{uint64, float32, float32},
                      Promotion{bool_, int8, int8}, Promotion{bool_, float16, float16},
                      Promotion{bool_, uint64, uint64}));

TEST(DType, EveryDTypePromotesToItself) {
  for (const DType d : kAll) EXPECT_EQ(promote(d, d), d);
}

TEST(DType, NoIntegerHoldsUint64AndASignedOne) {
  for (const DType d : {int8, int16, int32, int64}) {
    EXPECT_THROW(promote(uint64, d), DTypeError);
    EXPECT_THROW(promote(d, uint64), DTypeError);
  }
}

}  // namespace
}  // namespace baregrad

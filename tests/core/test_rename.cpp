// Errors start with the name of the function that was called.
#include <gtest/gtest.h>

#include "core/rename.h"
#include "tests/message_of.h"

namespace baregrad {
namespace {

template <class E>
std::string renamed(const char* text) {
  return message_of<E>([&] { in_name_of("squeeze", [&] { throw E(text); }); });
}

TEST(Rename, PutsTheNameInTheOthersPlaceAndKeepsTheType) {
  EXPECT_EQ(renamed<IndexError>("size: axis 7 of 2"), "squeeze: axis 7 of 2");
  EXPECT_EQ(renamed<ShapeError>("nn.Linear: [2: 3]"), "squeeze: [2: 3]");
  EXPECT_EQ(renamed<DTypeError>("a sentence: without a name"),
            "squeeze: a sentence: without a name");
  EXPECT_EQ(renamed<ValueError>(""), "squeeze: ");
  EXPECT_EQ(renamed<GradError>(": x"), "squeeze: : x");
  EXPECT_EQ(renamed<IoError>("no colon"), "squeeze: no colon");
}

TEST(Rename, KeepsWhatAnErrorCarries) {
  try {
    in_name_of("tile", [] { throw OutOfMemory("repeat: too much", 7, 3); });
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_STREQ(error.what(), "tile: too much");
    EXPECT_EQ(error.requested_bytes(), 7U);
    EXPECT_EQ(error.live_bytes(), 3U);
  }
}

TEST(Rename, PassesResultsAndOtherExceptionsOn) {
  int value = 3;
  int& same = in_name_of("f", [&]() -> int& { return value; });
  EXPECT_EQ(&same, &value);
  EXPECT_THROW(in_name_of("f", [] { throw std::bad_alloc(); }), std::bad_alloc);
}

}  // namespace
}  // namespace baregrad

// Untrusted text as it is shown on a terminal.
#include <gtest/gtest.h>

#include "core/printable.h"

namespace baregrad {
namespace {

TEST(Printable, KeepsWhatIsOnlyShown) {
  for (const char* text :
       {"", "plain text ~", "caf\xc3\xa9", "\xe2\x96\x88\xe2\x96\x8a", "\xf0\x9f\x98\x80"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, EscapesWhatTerminalsObey) {
  EXPECT_EQ(printable("\x1b[31m"), "\\x1b[31m");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\x7f"), "\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\u009b2J");                                   // C1: a control sequence introducer
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\u202e");          // right to left from here on
  EXPECT_EQ(printable("\xe2\x81\xa6x"), "\\u2066x");        // an isolate
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\u2028");          // a line separator
  EXPECT_EQ(printable("\xf3\xa0\x81\x81"), "\\U000e0041");  // a tag character
}

TEST(Printable, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("\xff"
                      "a"),
            "\\xffa");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                    // cut short
  EXPECT_EQ(printable("\xc0\x80"), "\\xc0\\x80");           // overlong
  EXPECT_EQ(printable("\xed\xb2\x80"), "\\xed\\xb2\\x80");  // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(Printable, LineEndsOnDemand) {
  EXPECT_EQ(printable("a\n\tb\r"), "a\\x0a\\x09b\\x0d");
  EXPECT_EQ(printable("a\n\tb\r", LineEnds::Kept), "a\n\tb\\x0d");
}

TEST(Printable, EveryByteGivesTextThatIsLeftAlone) {
  for (int byte = 0; byte < 256; ++byte) {
    for (int other = 0; other < 256; ++other) {
      const std::string text = {static_cast<char>(byte), static_cast<char>(other)};
      const std::string once = printable(text);
      ASSERT_EQ(printable(once), once);
    }
  }
}

TEST(Printable, QuotesAreCutBetweenCharacters) {
  EXPECT_EQ(quoted_text("abc", 3), "'abc'");
  EXPECT_EQ(quoted_text("abcd", 3), "'abc...'");
  EXPECT_EQ(quoted_text("ab\xc3\xa9"
                        "d",
                        3),
            "'ab...'");
  EXPECT_EQ(quoted_text("\n"), "'\\x0a'");
  EXPECT_EQ(columns_of("caf\xc3\xa9"), 4U);
}

}  // namespace
}  // namespace baregrad

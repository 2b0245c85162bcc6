// UTF-8 and hexadecimal digits.
#include <string>

#include <gtest/gtest.h>

#include "core/utf8.h"

namespace baregrad {
namespace {

TEST(Utf8, EveryCodePointIsWrittenAndReadBack) {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, code);
    ASSERT_EQ(utf8_length(text), text.size()) << static_cast<unsigned>(code);
    ASSERT_TRUE(is_utf8(text));
    ASSERT_EQ(utf8_columns(text), 1U);
    std::string_view rest = text;
    ASSERT_EQ(take_utf8(rest), code);
    ASSERT_TRUE(rest.empty());
  }
}

TEST(Utf8, WhatIsNotUtf8) {
  for (const std::string text : {"\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf",
                                 "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                                 "\xf5\x80\x80\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xff"}) {
    EXPECT_FALSE(is_utf8(text));
    EXPECT_FALSE(is_utf8("ok " + text));
    std::string_view rest = text;
    EXPECT_EQ(take_utf8(rest), kReplacementCharacter);
    EXPECT_EQ(rest.size(), text.size() - 1) << "one byte is dropped";
  }
  EXPECT_TRUE(is_utf8(""));
}

TEST(Hex, LowestDigits) {
  std::string out;
  append_hex(out, 0x1B, 2);
  append_hex(out, 0x202E, 4);
  append_hex(out, 0x1F600, 8);
  EXPECT_EQ(out, "1b202e0001f600");
}

}  // namespace
}  // namespace baregrad

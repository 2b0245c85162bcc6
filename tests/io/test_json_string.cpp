// Strings in JSON, read back by another parser.
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/json_string.h"
#include "core/utf8.h"

namespace baregrad {
namespace {

TEST(JsonString, AnotherParserReadsTheSameText) {
  std::string text;
  for (char32_t code = 0; code < 0x300; ++code) append_utf8(text, code);
  text += "\"\\ \xf0\x9f\x98\x80";
  std::string quoted;
  append_json_string(quoted, text);
  EXPECT_EQ(nlohmann::json::parse(quoted).get<std::string>(), text);
}

}  // namespace
}  // namespace baregrad

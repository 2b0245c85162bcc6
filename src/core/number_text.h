// Floats in messages: the shortest text that reads back as the same number.
#pragma once

#include <charconv>
#include <string>

namespace baregrad {

inline std::string number_text(double value) {
  char text[32];
  const std::to_chars_result end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

}  // namespace baregrad

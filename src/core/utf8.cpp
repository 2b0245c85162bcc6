// Decoding and encoding of UTF-8.
#include "core/utf8.h"

#include <algorithm>
#include <cstdint>

namespace baregrad {

namespace {

bool is_continuation(char byte) noexcept {
  return (static_cast<std::uint8_t>(byte) & 0xC0) == 0x80;
}

}  // namespace

std::size_t utf8_length(std::string_view text) noexcept {
  const auto lead = static_cast<std::uint8_t>(text[0]);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return 0;
  }
  // The second byte rules out overlong forms, surrogates and what lies above U+10FFFF.
  const auto second = static_cast<std::uint8_t>(text[1]);
  if (lead == 0xE0 && second < 0xA0) return 0;
  if (lead == 0xED && second >= 0xA0) return 0;
  if (lead == 0xF0 && second < 0x90) return 0;
  if (lead == 0xF4 && second >= 0x90) return 0;
  return length;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

char32_t utf8_code_point(std::string_view character) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(character[i]); };
  if (character.size() == 1) return byte(0);
  char32_t code = byte(0) & (0xFFU >> (character.size() + 1));
  for (std::size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3FU);
  return code;
}

char32_t take_utf8(std::string_view& text) noexcept {
  const std::size_t length = utf8_length(text);
  const char32_t code =
      length == 0 ? kReplacementCharacter : utf8_code_point(text.substr(0, length));
  text.remove_prefix(std::max<std::size_t>(1, length));
  return code;
}

void append_utf8(std::string& out, char32_t code) {
  const auto append_continuation = [&](int shift) {
    out += static_cast<char>(0x80 | ((code >> shift) & 0x3F));
  };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    append_continuation(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    append_continuation(6);
    append_continuation(0);
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    append_continuation(12);
    append_continuation(6);
    append_continuation(0);
  }
}

std::size_t utf8_columns(std::string_view text) noexcept {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

void append_hex(std::string& out, char32_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out += "0123456789abcdef"[value >> shift & 15];
  }
}

}  // namespace baregrad

// UTF-8 and JSON strings.
#include "io/text.h"

#include <cstdint>

namespace baregrad::io {

namespace {

/// Bytes of the character that begins `text`, 0 when none does.
std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // The second byte rules out overlong forms, surrogates and what lies above U+10FFFF.
  const std::uint8_t second = byte(1);
  if (lead == 0xE0 && second < 0xA0) return 0;
  if (lead == 0xED && second >= 0xA0) return 0;
  if (lead == 0xF0 && second < 0x90) return 0;
  if (lead == 0xF4 && second >= 0x90) return 0;
  return length;
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void append_json_string(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto code = static_cast<std::uint8_t>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20) {
      out += "\\u00";
      out += kHex[code >> 4];
      out += kHex[code & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string quoted_name(std::string_view name) {
  constexpr std::size_t kMost = 100;
  std::string out = "'";
  while (!name.empty() && out.size() < kMost) {
    const std::size_t length = utf8_length(name);
    const bool printable = length > 1 || (length == 1 && name[0] >= ' ' && name[0] != 0x7F);
    if (printable) {
      out += name.substr(0, length);
    } else {
      out += '?';
    }
    name.remove_prefix(length == 0 ? 1 : length);
  }
  out += name.empty() ? "'" : "...'";
  return out;
}

}  // namespace baregrad::io

// Escapes for characters that are not only shown.
#include "core/printable.h"

#include <algorithm>
#include <cstdint>

namespace baregrad {

namespace {

std::uint32_t code_point(std::string_view character) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(character[i]); };
  if (character.size() == 1) return byte(0);
  std::uint32_t code = byte(0) & (0xFFU >> (character.size() + 1));
  for (std::size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3FU);
  return code;
}

bool is_only_shown(std::uint32_t code) noexcept {
  if (code < 0x20 || (code >= 0x7F && code < 0xA0)) return false;
  const bool direction = code == 0x061C || code == 0x200E || code == 0x200F ||
                         (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  // Invisible: a byte order mark, line and paragraph separators, interlinear and tag characters.
  const bool invisible = code == 0xFEFF || code == 0x2028 || code == 0x2029 ||
                         (code >= 0xFFF9 && code <= 0xFFFB) || (code >= 0xE0000 && code <= 0xE007F);
  return !direction && !invisible;
}

void append_hex(std::string& out, std::uint32_t value, int digits) {
  constexpr char kHex[] = "0123456789abcdef";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kHex[value >> shift & 15];
}

void append_escape(std::string& out, std::uint32_t code, bool is_byte) {
  if (is_byte || code < 0x80) {
    out += "\\x";
    append_hex(out, code, 2);
  } else if (code <= 0xFFFF) {
    out += "\\u";
    append_hex(out, code, 4);
  } else {
    out += "\\U";
    append_hex(out, code, 8);
  }
}

}  // namespace

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

std::string printable(std::string_view text, LineEnds line_ends) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      append_escape(out, static_cast<std::uint8_t>(text[0]), true);
      text.remove_prefix(1);
      continue;
    }
    const std::uint32_t code = code_point(text.substr(0, length));
    const bool kept = line_ends == LineEnds::Kept && (code == '\n' || code == '\t');
    if (kept || is_only_shown(code)) {
      out += text.substr(0, length);
    } else {
      append_escape(out, code, false);
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string quoted_text(std::string_view text, std::size_t most) {
  std::string_view shown = text.substr(0, most);
  // Not in the middle of a character.
  while (shown.size() < text.size() && !shown.empty() &&
         (static_cast<std::uint8_t>(text[shown.size()]) & 0xC0) == 0x80) {
    shown.remove_suffix(1);
  }
  return "'" + printable(shown) + (shown.size() < text.size() ? "...'" : "'");
}

std::size_t columns_of(std::string_view printable_text) noexcept {
  return static_cast<std::size_t>(
      std::count_if(printable_text.begin(), printable_text.end(),
                    [](char c) { return (static_cast<std::uint8_t>(c) & 0xC0) != 0x80; }));
}

}  // namespace baregrad

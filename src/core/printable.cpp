// Escapes characters that a terminal does not simply show.
#include "core/printable.h"

#include <cstdint>

#include "core/utf8.h"

namespace baregrad {

namespace {

bool is_only_shown(char32_t code) noexcept {
  if (code < 0x20 || (code >= 0x7F && code < 0xA0)) return false;
  const bool direction = code == 0x061C || code == 0x200E || code == 0x200F ||
                         (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  // Invisible: a byte order mark, line and paragraph separators, interlinear and tag characters.
  const bool invisible = code == 0xFEFF || code == 0x2028 || code == 0x2029 ||
                         (code >= 0xFFF9 && code <= 0xFFFB) || (code >= 0xE0000 && code <= 0xE007F);
  return !direction && !invisible;
}

void append_escape(std::string& out, char32_t code, bool is_byte) {
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
    const char32_t code = utf8_code_point(text.substr(0, length));
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

}  // namespace baregrad

// Escapes and number formats, the same in every locale.
#include "graph/text.h"

#include <array>
#include <charconv>

#include "core/json_string.h"
#include "core/utf8.h"

namespace baregrad::graph {

namespace {

bool is_control(char32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

}  // namespace

std::string clean_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const char32_t code = take_utf8(text);
    const bool refused =
        (code < 0x20 && code != '\n' && code != '\t') || code == 0xFFFE || code == 0xFFFF;
    append_utf8(out, refused ? kReplacementCharacter : code);
  }
  return out;
}

std::string dot_text(std::string_view text) {
  std::string out;
  for (const char c : clean_utf8(text)) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += ' ';
        break;
      case '&':
        out += "&amp;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string one_line(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const char32_t code = take_utf8(text);
    if (code == '\n') {
      out += "\\n";
    } else if (is_control(code)) {
      out += "\\x";
      append_hex(out, code, 2);
    } else {
      append_utf8(out, code);
    }
  }
  return out;
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 7> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 1023.95 would be rounded to 1024.0.
  while (value >= 1023.95) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, 1);
  return std::string(text.data(), end.ptr) + " " + kUnits[unit];
}

std::string grouped(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string short_number(double value) {
  std::array<char, 32> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 3);
  return {text.data(), end.ptr};
}

}  // namespace baregrad::graph

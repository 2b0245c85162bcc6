// Escapes and number formats, the same in every locale.
#include "graph/text.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace baregrad::graph {

namespace {

constexpr char32_t kReplacement = 0xFFFD;

/// Takes one character off the front.
char32_t take_character(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const std::size_t length = lead < 0x80             ? 1
                             : (lead & 0xE0) == 0xC0 ? 2
                             : (lead & 0xF0) == 0xE0 ? 3
                             : (lead & 0xF8) == 0xF0 ? 4
                                                     : 0;
  const auto refuse = [&] {
    text.remove_prefix(1);
    return kReplacement;
  };
  if (length == 0 || length > text.size()) return refuse();
  if (length == 1) {
    text.remove_prefix(1);
    return lead;
  }
  char32_t code = lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return refuse();
    code = code << 6 | (byte(i) & 0x3FU);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeast[length] || code > 0x10FFFF || surrogate) return refuse();
  text.remove_prefix(length);
  return code;
}

void append_character(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

/// "\x1b"-like, for what must not reach a terminal or a JSON string as it is.
std::string hex_escape(const char* prefix, int digits, char32_t code) {
  std::string hex(static_cast<std::size_t>(digits), '0');
  for (auto at = hex.rbegin(); at != hex.rend(); ++at, code >>= 4) {
    *at = "0123456789abcdef"[code & 0xF];
  }
  return std::string(prefix).append(hex);
}

bool is_control(char32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

}  // namespace

std::string clean_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const char32_t code = take_character(text);
    const bool refused =
        (code < 0x20 && code != '\n' && code != '\t') || code == 0xFFFE || code == 0xFFFF;
    append_character(out, refused ? kReplacement : code);
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
    const char32_t code = take_character(text);
    if (code == '\n') {
      out += "\\n";
    } else if (is_control(code)) {
      out += hex_escape("\\x", 2, code);
    } else {
      append_character(out, code);
    }
  }
  return out;
}

std::size_t columns(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 7> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 1023.95 would be written as 1024.0.
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

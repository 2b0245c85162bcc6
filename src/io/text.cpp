// UTF-8 and JSON strings.
#include "io/text.h"

#include <algorithm>
#include <cstdint>

#include "baregrad/error.h"
#include "core/message.h"
#include "core/printable.h"

namespace baregrad::io {

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

const char* name_fault(std::string_view name) noexcept {
  if (!is_utf8(name)) return "is not UTF-8";
  if (name.find('\0') != std::string_view::npos) return "holds a NUL character";
  return nullptr;
}

void check_name(std::string_view name, const char* what, const char* who) {
  if (const char* fault = name_fault(name)) {
    throw ValueError(message(who, ": ", what, " ", quoted_name(name), " ", fault));
  }
}

void check_path(std::string_view path, std::string_view who) {
  if (path.find('\0') == std::string_view::npos) return;
  throw ValueError(message(who, ": the path ", quoted_name(path), " holds a NUL character"));
}

void append_json_string(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto code = static_cast<std::uint8_t>(text[0]);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (code == '"' || code == '\\') {
      out += '\\';
      out += text[0];
    } else if (code < 0x20) {
      out += "\\u00";
      out += kHex[code >> 4];
      out += kHex[code & 15];
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  out += '"';
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string quoted_name(std::string_view name) {
  constexpr std::size_t kMost = 100;
  return quoted_text(name, kMost);
}

}  // namespace baregrad::io

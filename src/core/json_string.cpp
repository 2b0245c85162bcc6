// Escaping of JSON strings.
#include "core/json_string.h"

#include <cstdint>

#include "core/utf8.h"

namespace baregrad {

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto code = static_cast<std::uint8_t>(text[0]);
    if (code >= 0x80) {
      append_utf8(out, take_utf8(text));
      continue;
    }
    if (code == '"' || code == '\\') {
      out += '\\';
      out += text[0];
    } else if (code < 0x20) {
      out += "\\u";
      append_hex(out, code, 4);
    } else {
      out += text[0];
    }
    text.remove_prefix(1);
  }
  out += '"';
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace baregrad

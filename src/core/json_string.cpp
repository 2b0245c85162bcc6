// Escaping of JSON strings.
#include "core/json_string.h"

#include <cstdint>

#include "core/utf8.h"

namespace baregrad {

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto code = static_cast<std::uint8_t>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20) {
      out += "\\u";
      append_hex(out, code, 4);
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace baregrad

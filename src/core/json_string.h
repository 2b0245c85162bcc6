// Strings in JSON.
#pragma once

#include <string>
#include <string_view>

namespace baregrad {

/// Appends `text` in quotes and with the escapes that JSON requires. Bytes that are not UTF-8
/// become U+FFFD.
void append_json_string(std::string& out, std::string_view text);
std::string json_string(std::string_view text);

}  // namespace baregrad

// Strings in JSON.
#pragma once

#include <string>
#include <string_view>

namespace baregrad {

/// Appends `text`, which is UTF-8, in quotes and with the escapes that JSON requires.
void append_json_string(std::string& out, std::string_view text);

}  // namespace baregrad

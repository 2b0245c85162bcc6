// Text inside of files: UTF-8, JSON strings, names in messages.
#pragma once

#include <string>
#include <string_view>

namespace baregrad::io {

/// No overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text) noexcept;

/// Appends `text`, which is UTF-8, in quotes, escaped as JSON wants it.
void append_json_string(std::string& out, std::string_view text);

/// A name from a file for a message: in quotes, cut to a readable length, what a terminal would not
/// only show escaped.
std::string quoted_name(std::string_view name);

}  // namespace baregrad::io

// Text in files: UTF-8, JSON strings, names in messages.
#pragma once

#include <string>
#include <string_view>

namespace baregrad::io {

/// No overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text) noexcept;

/// The fault of a name in a file, or null. A valid name is UTF-8 without NUL characters: programs
/// that treat NUL as the end would see another name.
const char* name_fault(std::string_view name) noexcept;
/// Throws ValueError for an invalid name: "who: what 'name' holds a NUL character".
void check_name(std::string_view name, const char* what, const char* who);
/// Throws ValueError for a path with a NUL character: the system would open another file.
void check_path(std::string_view path, std::string_view who);

/// Appends `text` in quotes, escaped as JSON wants it. Bytes that are no UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);
std::string json_string(std::string_view text);

/// A name from a file, for a message: quoted, cut to a readable length, with control characters
/// escaped.
std::string quoted_name(std::string_view name);

}  // namespace baregrad::io

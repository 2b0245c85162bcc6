// Names inside of files and paths of files: what is allowed, and how messages quote them.
#pragma once

#include <string>
#include <string_view>

namespace baregrad::io {

/// What is wrong with a name in a file, null for a good one. A name is UTF-8 and holds no NUL
/// character: programs that take it for the end would see another name.
const char* name_fault(std::string_view name) noexcept;
/// Throws ValueError for an invalid name: "who: what 'name' holds a NUL character".
void check_name(std::string_view name, const char* what, const char* who);
/// Throws ValueError for a path with a NUL character: the system would open another file.
void check_path(std::string_view path, std::string_view who);

/// A name from a file for a message: in quotes, cut to a readable length, what a terminal would not
/// only show escaped.
std::string quoted_name(std::string_view name);

}  // namespace baregrad::io

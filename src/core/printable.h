// Text from outside (paths, names, arguments, file contents) for messages and terminals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace baregrad {

/// Text that a terminal shows without any other effect. Control characters (C0, DEL, C1), line and
/// paragraph separators and characters that change the direction of text become \x1b or \u202e;
/// bytes that are not UTF-8 become \xff. Line ends and tabs are kept on request.
enum class LineEnds { Escaped, Kept };
std::string printable(std::string_view text, LineEnds line_ends = LineEnds::Escaped);

/// The same in single quotes, at most `most` bytes of it, followed by "..." if it was cut.
std::string quoted_text(std::string_view text, std::size_t most = 4096);

}  // namespace baregrad

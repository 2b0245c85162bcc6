// Text of users inside text of ours: whatever a name or a label holds, the result stays valid.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace baregrad::graph {

/// Well-formed UTF-8: bytes that are none, and characters that XML cannot hold, become U+FFFD.
std::string clean_utf8(std::string_view text);
/// For use between the quotes of a label of Graphviz, which reads backslashes and HTML entities.
std::string dot_text(std::string_view text);
/// For a cell of a table: control characters become visible escapes.
std::string one_line(std::string_view text);

/// "96 B", "1.5 KiB", "2.0 GiB"
std::string bytes_text(std::uint64_t bytes);
/// 1234567 as "1,234,567"
std::string grouped(std::uint64_t number);
/// Three digits that matter: "0.0123", "1.23e-09", "nan".
std::string short_number(double value);

}  // namespace baregrad::graph

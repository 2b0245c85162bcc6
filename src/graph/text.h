// User text inside generated text. The result is valid for any contents of names and labels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace baregrad::graph {

/// Well-formed UTF-8. Invalid bytes, and characters that are not allowed in XML, become U+FFFD.
std::string clean_utf8(std::string_view text);
/// For a quoted label of Graphviz, which interprets backslashes and HTML entities.
std::string dot_text(std::string_view text);
/// For a cell of a table. Control characters become visible escapes.
std::string one_line(std::string_view text);

/// "96 B", "1.5 KiB", "2.0 GiB"
std::string bytes_text(std::uint64_t bytes);
/// 1234567 as "1,234,567"
std::string grouped(std::uint64_t number);
/// Three significant digits: "0.0123", "1.23e-09", "nan".
std::string short_number(double value);

}  // namespace baregrad::graph

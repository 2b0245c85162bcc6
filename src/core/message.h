// Error messages by concatenation.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

namespace baregrad {

namespace detail {
inline void append(std::string& out, std::string_view text) { out += text; }
inline void append(std::string& out, char c) { out += c; }
template <class T>
requires std::is_arithmetic_v<T>
void append(std::string& out, T value) { out += std::to_string(value); }
}  // namespace detail

/// All parts, one after the other: strings, characters and numbers.
template <class... Parts>
std::string message(const Parts&... parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

}  // namespace baregrad

// UTF-8: checking, decoding and encoding.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace baregrad {

/// U+FFFD, shown in place of bytes that are not UTF-8.
inline constexpr char32_t kReplacementCharacter = 0xFFFD;

/// Bytes of the UTF-8 character at the start of `text`, which is not empty; 0 when there is none.
/// No overlong forms, no surrogates, nothing above U+10FFFF.
std::size_t utf8_length(std::string_view text) noexcept;

/// Whether all of `text` is UTF-8, by the rules of utf8_length.
bool is_utf8(std::string_view text) noexcept;

/// The code point of one character: `character` holds it and nothing else.
char32_t utf8_code_point(std::string_view character) noexcept;

/// Takes the first character off `text`, which is not empty. A byte that is not UTF-8 gives the
/// replacement character.
char32_t take_utf8(std::string_view& text) noexcept;

void append_utf8(std::string& out, char32_t code);

/// Columns that UTF-8 text takes on a terminal: one for each character; combining marks are not
/// considered.
std::size_t utf8_columns(std::string_view text) noexcept;

/// The lowest `digits` hexadecimal digits of a number, in lower case.
void append_hex(std::string& out, char32_t value, int digits);

}  // namespace baregrad

// Error messages by concatenation.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

namespace baregrad {

namespace detail {

/// Text or a number. Only this conversion is compiled per call: the joining is one function.
class MessagePart {
 public:
  MessagePart(std::string_view text) noexcept : kind_(Kind::Text), text_(text) {}
  MessagePart(const char* text) noexcept : MessagePart(std::string_view(text)) {}
  MessagePart(const std::string& text) noexcept : MessagePart(std::string_view(text)) {}
  MessagePart(char c) noexcept : kind_(Kind::Character), character_(c) {}
  template <std::signed_integral T>
  MessagePart(T value) noexcept : kind_(Kind::Signed), signed_(value) {}
  template <std::unsigned_integral T>
  MessagePart(T value) noexcept : kind_(Kind::Unsigned), unsigned_(value) {}
  template <std::floating_point T>
  MessagePart(T value) noexcept : kind_(Kind::Real), real_(static_cast<double>(value)) {}

  void append_to(std::string& out) const;

 private:
  enum class Kind : unsigned char { Text, Character, Signed, Unsigned, Real };
  Kind kind_;
  union {
    std::string_view text_;
    char character_;
    long long signed_;
    unsigned long long unsigned_;
    double real_;
  };
};

std::string join(std::initializer_list<MessagePart> parts);

}  // namespace detail

/// Concatenates all parts: strings, characters and numbers.
template <class... Parts>
std::string message(const Parts&... parts) {
  return detail::join({detail::MessagePart(parts)...});
}

}  // namespace baregrad

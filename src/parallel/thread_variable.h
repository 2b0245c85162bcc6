// BAREGRAD_NUM_THREADS: read when the pool starts, checked where an error can be reported.
#pragma once

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "core/printable.h"

namespace baregrad::parallel {

constexpr int kMaxThreads = 1024;

/// A decimal number from 1 to kMaxThreads, and nothing else.
inline std::optional<int> parse_thread_count(std::string_view text) noexcept {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end || value < 1 || value > kMaxThreads) return {};
  return value;
}

/// Null when unset or empty.
inline const char* thread_variable() noexcept {
  const char* text = std::getenv("BAREGRAD_NUM_THREADS");
  return text == nullptr || *text == '\0' ? nullptr : text;
}

/// What is wrong with the variable; empty when nothing is. The library itself then uses all cores,
/// since its first op may come long after the place where the error could be handled.
inline std::string thread_variable_problem() {
  const char* text = thread_variable();
  if (text == nullptr || parse_thread_count(text)) return {};
  constexpr std::size_t kMost = 60;
  return "BAREGRAD_NUM_THREADS: " + quoted_text(text, kMost) + " is not a whole number from 1 to " +
         std::to_string(kMaxThreads);
}

}  // namespace baregrad::parallel

// Strict parsing of numbers and paths.
#include "cli/options.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include "core/printable.h"

namespace baregrad::cli {
namespace {

constexpr std::size_t kMostQuoted = 60;

template <class T>
std::string range_text(T least, T most) {
  constexpr const char* kKind = std::is_floating_point_v<T> ? "number" : "whole number";
  if constexpr (std::is_integral_v<T>) {
    if (most == std::numeric_limits<T>::max() && sizeof(T) == 8) {
      return fmt::format("{} from {} to 2^{} - 1", kKind, least, std::is_signed_v<T> ? 63 : 64);
    }
  }
  return fmt::format("{} from {} to {}", kKind, least, most);
}

}  // namespace

template <class T>
T parse_number(const std::string& option, const std::string& text, T least, T most) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end && value >= least && value <= most) return value;
  throw CLI::ValidationError(option, fmt::format("{} is not a {}", quoted_text(text, kMostQuoted),
                                                 range_text(least, most)));
}

template int parse_number(const std::string&, const std::string&, int, int);
template std::int64_t parse_number(const std::string&, const std::string&, std::int64_t,
                                   std::int64_t);
template std::uint64_t parse_number(const std::string&, const std::string&, std::uint64_t,
                                    std::uint64_t);
template double parse_number(const std::string&, const std::string&, double, double);

CLI::Option* add_numbers(CLI::App* app, const std::string& name, std::vector<std::int64_t>& values,
                         std::int64_t most, const std::string& doc) {
  return app->add_option(name, CLI::callback_t([&values, name, most](const CLI::results_t& texts) {
                           const std::string& text = texts.at(0);
                           values.clear();
                           for (std::size_t begin = 0; begin <= text.size();) {
                             const std::size_t end = std::min(text.find(',', begin), text.size());
                             values.push_back(parse_number<std::int64_t>(
                                 name, text.substr(begin, end - begin), 1, most));
                             begin = end + 1;
                           }
                           return true;
                         }),
                         doc);
}

CLI::Option* add_path(CLI::App* app, const std::string& name, std::string& value,
                      const std::string& doc) {
  return app->add_option(name, CLI::callback_t([&value, name](const CLI::results_t& texts) {
                           if (texts.at(0).empty())
                             throw CLI::ValidationError(name, "the path is empty: it has no name");
                           value = texts[0];
                           return true;
                         }),
                         doc);
}

}  // namespace baregrad::cli

// Options whose values the command parses itself. CLI11 takes '' for 0, wraps -1 round to 2^64 - 1
// and reads 010 as octal; here the whole text must be a decimal number in range.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace baregrad::cli {

/// Throws CLI::ValidationError, which names the option, unless the value is a decimal number from
/// `least` to `most` that a T can hold. NaN is refused.
template <class T>
T parse_number(const std::string& option, const std::string& text, T least, T most);

extern template int parse_number(const std::string&, const std::string&, int, int);
extern template std::int64_t parse_number(const std::string&, const std::string&, std::int64_t,
                                          std::int64_t);
extern template std::uint64_t parse_number(const std::string&, const std::string&, std::uint64_t,
                                           std::uint64_t);
extern template double parse_number(const std::string&, const std::string&, double, double);

template <class T>
CLI::Option* add_number(CLI::App* app, const std::string& name, T& value, T least, T most,
                        const std::string& doc) {
  return app->add_option(name,
                         CLI::callback_t([&value, name, least, most](const CLI::results_t& texts) {
                           value = parse_number<T>(name, texts.at(0), least, most);
                           return true;
                         }),
                         doc);
}

/// N,N,...: one or more numbers, each from 1 to `most`.
CLI::Option* add_numbers(CLI::App* app, const std::string& name, std::vector<std::int64_t>& values,
                         std::int64_t most, const std::string& doc);

/// The path of a file or a folder: any bytes, but not empty.
CLI::Option* add_path(CLI::App* app, const std::string& name, std::string& value,
                      const std::string& doc);

}  // namespace baregrad::cli

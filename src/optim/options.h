// The options of optimizers as arrays of numbers, derived from `fields` of the option structs.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "baregrad/optim.h"

namespace baregrad::optim {

struct OptionRow {
  const char* name;
  OptionRange range;
  double standard;  ///< the default
  bool is_switch;   ///< a bool, stored as 0 or 1
};

template <class Options>
constexpr std::size_t option_count() {
  std::size_t count = 0;
  const Options options;
  Options::fields(options, [&](const char*, const auto&, const OptionRange&) { ++count; });
  return count;
}

namespace options_detail {

struct AnyMember {
  template <class T>
  constexpr operator T() const;  // NOLINT(google-explicit-constructor)
};
template <class Options, std::size_t... I>
constexpr bool has_members(std::index_sequence<I...>) {
  return requires { Options{(static_cast<void>(I), AnyMember{})...}; };
}

}  // namespace options_detail

/// The options of one optimizer, in the order of its members.
template <class Options>
constexpr auto option_rows() {
  constexpr std::size_t kCount = option_count<Options>();
  using options_detail::has_members;
  static_assert(has_members<Options>(std::make_index_sequence<kCount>()) &&
                    !has_members<Options>(std::make_index_sequence<kCount + 1>()),
                "fields() must name every member");
  std::array<OptionRow, kCount> rows{};
  std::size_t i = 0;
  const Options options;
  Options::fields(options, [&](const char* name, const auto& member, const OptionRange& range) {
    constexpr bool kIsSwitch = std::is_same_v<std::decay_t<decltype(member)>, bool>;
    rows[i++] = {name, range, static_cast<double>(member), kIsSwitch};
  });
  return rows;
}
template <class Options>
inline constexpr auto kOptionRows = option_rows<Options>();

template <class Options>
std::vector<double> values_of(const Options& options) {
  std::vector<double> values;
  Options::fields(options, [&](const char*, const auto& member, const OptionRange&) {
    values.push_back(static_cast<double>(member));
  });
  return values;
}

/// The struct from the values of its options, in order. A boolean option is true unless 0.
template <class Options>
Options options_of(const double* values) {
  Options options;
  Options::fields(options, [&](const char*, auto& member, const OptionRange&) {
    if constexpr (std::is_same_v<decltype(member), bool&>) {
      member = *values++ != 0;
    } else {
      member = *values++;
    }
  });
  return options;
}

}  // namespace baregrad::optim

// Values in the text of extra_repr, as Python prints them.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>

#include "baregrad/dims.h"
#include "baregrad/nn/module.h"
#include "core/number_text.h"

namespace baregrad::nn {

inline const char* text_of(bool value) { return value ? "True" : "False"; }

/// 1.0, 0.01, 1e-05
inline std::string text_of(double value) {
  std::string text = number_text(value);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

inline std::string text_of(std::int64_t value) { return std::to_string(value); }

/// (3, 5), and (3,) for one
inline std::string text_of(const Dims& dims) {
  std::string text = "(";
  for (int i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
  return text + (dims.size() == 1 ? ",)" : ")");
}

/// beta=1.0, threshold=20.0
template <class... T>
std::string text_of(const std::tuple<Argument<T>...>& arguments) {
  std::string text;
  const auto append = [&](const auto& argument) {
    if (!text.empty()) text += ", ";
    text += argument.name;
    text += '=';
    text += text_of(argument.value);
  };
  std::apply([&](const auto&... argument) { (append(argument), ...); }, arguments);
  return text;
}

}  // namespace baregrad::nn

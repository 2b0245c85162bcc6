// Sources embedded in the command, to be built with other flags.
#pragma once

#include <span>
#include <string_view>

namespace baregrad::lab {

struct EmbeddedSource {
  std::string_view path;  ///< "lab/ladder/01_naive.cpp"
  std::string_view text;
};

std::span<const EmbeddedSource> embedded_sources();

}  // namespace baregrad::lab

// Sources that the command carries with it, to build them again with other flags.
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

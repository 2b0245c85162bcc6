// Graphviz, if it is installed.
#pragma once

#include <string>

namespace baregrad::cli {

/// Whether there is a `dot` on the PATH.
bool has_graphviz();
/// The output of `dot -Tsvg` for a graph. Throws IoError when there is no `dot` or it fails.
std::string svg_of_dot(const std::string& dot);

}  // namespace baregrad::cli

// Tensors as text, as NumPy prints arrays.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "baregrad/export.h"
#include "baregrad/tensor.h"

namespace baregrad {

/// NumPy's print options and their defaults.
struct PrintOptions {
  int precision = 8;              ///< most digits after the point
  std::int64_t threshold = 1000;  ///< more elements than this are summarised
  int edge_items = 3;             ///< shown at each end of a summarised axis
  int line_width = 75;
  bool suppress = false;  ///< never use exponents
};

/// What str() of the NumPy array shows.
[[nodiscard]] BAREGRAD_API std::string to_string(const Tensor& tensor,
                                                 const PrintOptions& options = {});
BAREGRAD_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace baregrad

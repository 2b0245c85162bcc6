// Views in messages.
#include "backends/cpu/describe.h"

#include <span>

namespace baregrad::kernels {

Dims shape_of(const View& v) {
  return Dims(std::span<const std::int64_t>(v.shape, static_cast<std::size_t>(v.ndim)));
}

std::string describe(const View& v) { return std::string(name(v.dtype)) + to_string(shape_of(v)); }

}  // namespace baregrad::kernels

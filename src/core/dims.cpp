// Dims as text, and their limit.
#include "baregrad/dims.h"

#include "baregrad/error.h"
#include "core/message.h"

namespace baregrad {

void detail::throw_too_many_dims(std::int64_t count) {
  throw ShapeError(message("dims: a tensor has at most ", kMaxDims, " dimensions, not ", count));
}

void detail::throw_dims_index(std::int64_t index, int size) {
  throw IndexError(message("dims: index ", index, " is out of range for ", size,
                           size == 1 ? " number" : " numbers"));
}

std::string to_string(const Dims& dims) {
  std::string out = "[";
  for (int i = 0; i < dims.size(); ++i) {
    if (i != 0) out += ',';
    out += std::to_string(dims[i]);
  }
  return out + "]";
}

}  // namespace baregrad

// The error of an index that is out of range.
#include "core/index_bounds.h"

#include "baregrad/error.h"
#include "core/message.h"

namespace baregrad {

void throw_out_of_bounds(std::int64_t index, const IndexBounds& bounds, const char* who) {
  throw IndexError(message(who, ": index ", index, " is out of range for axis ", bounds.axis,
                           " of size ", bounds.size, " in ", name(bounds.dtype),
                           to_string(bounds.shape)));
}

}  // namespace baregrad

// Out-of-line members of the error types: one vtable and one type_info each, in this library.
#include "baregrad/error.h"

namespace baregrad {

Error::~Error() = default;
ShapeError::~ShapeError() = default;
DTypeError::~DTypeError() = default;
IndexError::~IndexError() = default;
ValueError::~ValueError() = default;
GradError::~GradError() = default;
OutOfMemory::~OutOfMemory() = default;
IoError::~IoError() = default;

OutOfMemory::OutOfMemory(const std::string& message, std::size_t requested, std::size_t live)
    : Error(message), requested_(requested), live_(live) {}

}  // namespace baregrad

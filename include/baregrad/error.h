// Typed errors. A message starts with the op's name and holds all shapes and dtypes involved.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

#include "baregrad/export.h"

namespace baregrad {

/// Base of everything the library throws on purpose.
class BAREGRAD_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Error() override;
};

/// Shapes, strides or sizes that do not fit together.
class BAREGRAD_API ShapeError : public Error {
 public:
  using Error::Error;
  ~ShapeError() override;
};

/// A dtype the op does not take, or a pair that has no common dtype.
class BAREGRAD_API DTypeError : public Error {
 public:
  using Error::Error;
  ~DTypeError() override;
};

/// An axis or an index out of range.
class BAREGRAD_API IndexError : public Error {
 public:
  using Error::Error;
  ~IndexError() override;
};

/// A value the op is not defined for (integer division by zero, a negative size, ...).
class BAREGRAD_API ValueError : public Error {
 public:
  using Error::Error;
  ~ValueError() override;
};

/// A gradient that was asked for and cannot be had: no history, one that was freed, or values that
/// were overwritten since.
class BAREGRAD_API GradError : public Error {
 public:
  using Error::Error;
  ~GradError() override;
};

/// The allocator could not deliver. Everything that was alive before the call still is.
class BAREGRAD_API OutOfMemory : public Error {
 public:
  OutOfMemory(const std::string& message, std::size_t requested, std::size_t live);
  ~OutOfMemory() override;
  std::size_t requested_bytes() const noexcept { return requested_; }
  std::size_t live_bytes() const noexcept { return live_; }

 private:
  std::size_t requested_;
  std::size_t live_;
};

/// Reading or writing a file failed.
class BAREGRAD_API IoError : public Error {
 public:
  using Error::Error;
  ~IoError() override;
};

}  // namespace baregrad

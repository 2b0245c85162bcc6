// Error conversion for functions that Python calls directly, without nanobind.
#pragma once

namespace baregrad::python {

/// Inside a catch block: makes the exception that is being handled Python's current error.
void set_python_error() noexcept;

}  // namespace baregrad::python

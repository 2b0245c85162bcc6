// Reports errors of inner functions in the name of the function that the user called.
#pragma once

#include <utility>

#include "baregrad/error.h"

namespace baregrad {

/// Throws the error being handled again, with `who` in place of the function name at the start of
/// its message.
[[noreturn]] void rethrow_in_name_of(const char* who);

/// Calls f(); its errors are reported in the name of `who`. Costs nothing without an error. Not for
/// calls into user code, whose errors have names of their own.
template <class F>
decltype(auto) in_name_of(const char* who, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const Error&) {
    rethrow_in_name_of(who);
  }
}

}  // namespace baregrad

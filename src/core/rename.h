// Errors in the name of the function that the user called, where it is made of others.
#pragma once

#include <utility>

#include "baregrad/error.h"

namespace baregrad {

/// Throws the error being handled again, with `who` in the place of the name that its message
/// starts with.
[[noreturn]] void rethrow_in_name_of(const char* who);

/// f(), whose errors are told in the name of `who`. Costs nothing where there is none. Not for what
/// calls back into user code: errors from there have names of their own.
template <class F>
decltype(auto) in_name_of(const char* who, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const Error&) {
    rethrow_in_name_of(who);
  }
}

}  // namespace baregrad

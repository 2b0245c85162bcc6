// How much of the stack of a thread is left, for code that recurses as deep as its data is nested.
#pragma once

#include "core/fast_tls.h"

namespace baregrad {

namespace detail {
/// The address that the stack of this thread must not grow below; null until it is known.
extern BAREGRAD_FAST_TLS const char* stack_limit;
void find_stack_limit() noexcept;
[[noreturn]] void throw_too_deep(const char* who);
}  // namespace detail

/// Throws ValueError, in the name of `who`, when the rest of the stack is not enough for an op.
inline void check_stack(const char* who) {
  if (detail::stack_limit == nullptr) [[unlikely]]
    detail::find_stack_limit();
  if (static_cast<const char*>(__builtin_frame_address(0)) < detail::stack_limit) [[unlikely]]
    detail::throw_too_deep(who);
}

}  // namespace baregrad

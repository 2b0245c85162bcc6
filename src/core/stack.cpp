// The limits of a thread's stack.
#include "core/stack.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include <pthread.h>

#include "baregrad/error.h"
#include "core/message.h"

namespace baregrad::detail {

BAREGRAD_FAST_TLS const char* stack_limit = nullptr;

namespace {

// Stack needed by an op, a hook in Python and the unwinding of an error.
constexpr std::size_t kReserve = std::size_t{512} << 10;

}  // namespace

void find_stack_limit() noexcept {
  void* lowest = nullptr;
  std::size_t size = 0;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    if (pthread_attr_getstack(&attributes, &lowest, &size) != 0) lowest = nullptr;
    pthread_attr_destroy(&attributes);
  }
  if (lowest == nullptr) {
    // The limit is not known: accept any address.
    static constexpr char kLowest = 0;
    stack_limit = std::min(&kLowest, static_cast<const char*>(__builtin_frame_address(0)));
    return;
  }
  stack_limit = static_cast<const char*>(lowest) + std::min(kReserve, size / 4);
}

void throw_too_deep(const char* who) {
  throw ValueError(
      message(who, ": modules are nested too deep for the stack of this thread; flatten them"));
}

}  // namespace baregrad::detail

// Threads of the engine. Results never depend on how many there are.
#pragma once

#include "baregrad/export.h"

namespace baregrad {

/// Threads used by kernels, the caller included. Starts as BAREGRAD_NUM_THREADS, else the number of
/// cores this process may run on.
BAREGRAD_API int get_num_threads() noexcept;
/// 1 to 1024; throws ValueError otherwise.
BAREGRAD_API void set_num_threads(int count);

/// `check` is asked whether long work should go on: between the pieces of an op and the nodes of a
/// backward, in the thread that called it, at most every 50 ms. When it throws, the work is
/// abandoned and the caller gets the exception: results are dropped, and what was being written in
/// place (by `x += y`, by an optimizer's step) is left half written. Null: nobody is asked.
BAREGRAD_API void set_interrupt_check(void (*check)()) noexcept;

}  // namespace baregrad

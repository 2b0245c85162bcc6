// Threads of the engine. Results never depend on how many there are.
#pragma once

#include "baregrad/export.h"

namespace baregrad {

/// Threads used by kernels, the caller included. Starts as BAREGRAD_NUM_THREADS, else the number of
/// cores this process may run on.
BAREGRAD_API int get_num_threads() noexcept;
/// 1 to 1024; throws ValueError otherwise.
BAREGRAD_API void set_num_threads(int count);

}  // namespace baregrad

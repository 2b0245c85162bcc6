// The operations and bytes of a piece of work, as counted by the profiler.
#pragma once

#include <functional>

#include "graph/work.h"

namespace baregrad::lab {

/// The sum over all ops that `call` runs, counted as profile.h defines. Throws ValueError while
/// another recording runs.
profile::Work count_work(const std::function<void()>& call);

}  // namespace baregrad::lab

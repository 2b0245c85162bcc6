// How much a piece of the engine computes and moves, as the profiler counts it.
#pragma once

#include <functional>

#include "profile/work.h"

namespace baregrad::lab {

/// The sum over all ops that `call` runs, by the convention of profile.h. Throws ValueError while
/// another recording runs.
profile::Work count_work(const std::function<void()>& call);

}  // namespace baregrad::lab

// The list of the three ways.
#include "lab/ladder/threads.h"

namespace baregrad::lab {
namespace {

constexpr ThreadedRung kThreadedRungs[] = {
    {"pthreads", "threads created for every product", "threads_pthreads.cpp", multiply_pthreads},
    {"openmp", "OpenMP's threads", "threads_openmp.cpp", multiply_openmp},
    {"pool", "the engine's pool", "threads_pool.cpp", multiply_pool},
};

}  // namespace

std::span<const ThreadedRung> threaded_rungs() { return kThreadedRungs; }

}  // namespace baregrad::lab

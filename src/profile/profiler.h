// profile/: the profiler. It is built on ops and io and does not include autograd: programs without
// gradients are profiled without it.
//
// Here: the watcher that turns the dispatcher's calls into events. It opens no files; recording.cpp
// writes them through io.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "profile/trace.h"

namespace baregrad::profile {

/// Starts a recording for `target` and returns its number; 0 if a recording is running.
std::uint64_t begin_recording(const std::string& target);
/// Ends the recording with this number; 0 means the current one. Empty if it is not running.
std::optional<Trace> end_recording(std::uint64_t number);
/// The target of the current recording.
std::optional<std::string> recording_target();

}  // namespace baregrad::profile

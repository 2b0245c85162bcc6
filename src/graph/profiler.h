// The profiler: turns what watchers are told into events. Opens no files; io/profile.cpp does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "graph/trace.h"

namespace baregrad::profile {

/// Starts recording, for `target`. Returns the recording's number, 0 when one is running already.
std::uint64_t begin_recording(const std::string& target);
/// Ends the recording with this number, or any with 0. Nothing when it is not running.
std::optional<Trace> end_recording(std::uint64_t number);
/// What the running recording was started for.
std::optional<std::string> recording_target();

}  // namespace baregrad::profile

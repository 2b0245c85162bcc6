// profile/: times of every op, kernel and backward step of a stretch of a program. Built on ops and
// io alone: what runs without gradients is profiled without autograd.
//
// Here: the watcher that turns what the dispatcher reports into events. It opens no files;
// recording.cpp writes them, through io.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "profile/trace.h"

namespace baregrad::profile {

/// Starts recording, for `target`. Returns the recording's number, 0 when one is running already.
std::uint64_t begin_recording(const std::string& target);
/// Ends the recording with this number, or any with 0. Nothing when it is not running.
std::optional<Trace> end_recording(std::uint64_t number);
/// What the running recording was started for.
std::optional<std::string> recording_target();

}  // namespace baregrad::profile

// The public functions of the profiler: start and stop a recording, write its file.
#include <filesystem>

#include "baregrad/error.h"
#include "baregrad/profile.h"
#include "core/message.h"
#include "io/atomic_file.h"
#include "profile/profiler.h"

namespace baregrad::profile {

namespace {

std::uint64_t begin(const std::string& file) {
  constexpr const char* kWho = "profile::start";
  if (const auto target = recording_target()) {
    throw ValueError(message(kWho, ": a recording into '", *target, "' is running; stop it first"));
  }
  const io::AtomicFile probe(file, kWho);
  // The working folder may change before the end of the recording.
  const std::uint64_t number = begin_recording(std::filesystem::absolute(file).string());
  if (number == 0) throw ValueError(message(kWho, ": another thread started a recording just now"));
  return number;
}

void end(std::uint64_t number) {
  constexpr const char* kWho = "profile::stop";
  const std::optional<Trace> trace = end_recording(number);
  if (!trace.has_value()) throw ValueError(message(kWho, ": nothing is being recorded"));
  io::AtomicFile file(trace->target, kWho);
  file.open();
  std::string text;
  constexpr std::size_t kBlock = 1U << 16;
  write_json(*trace, [&](std::string_view part) {
    text += part;
    if (text.size() < kBlock) return;
    file.write(text);
    text.clear();
  });
  file.write(text);
  file.commit();
}

}  // namespace

void start(const std::string& file) { begin(file); }
void stop() { end(0); }
bool is_recording() { return recording_target().has_value(); }

Recording::Recording(const std::string& file) : number_(begin(file)) {}

Recording::~Recording() {
  try {
    stop();
  } catch (...) {  // NOLINT(bugprone-empty-catch): said in the header
  }
}

void Recording::stop() { end(number_); }

}  // namespace baregrad::profile

// The processor's own counters through perf_event_open(2). Events are named by libpfm4, which is
// opened at run time.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lab/counting/counts.h"
#include "lab/counting/trial.h"

namespace baregrad::lab {

/// One event of this thread in user mode.
class PerfEvent {
 public:
  explicit PerfEvent(int descriptor) noexcept : descriptor_(descriptor) {}
  ~PerfEvent();
  PerfEvent(const PerfEvent&) = delete;
  PerfEvent& operator=(const PerfEvent&) = delete;

  void start() const;
  /// Events since start(). Empty if the counter did not run all the time.
  std::optional<double> stop() const;

 private:
  int descriptor_;
};

class PerfEvents {
 public:
  /// Null where instructions cannot be counted, with the reason in `why`.
  static std::unique_ptr<PerfEvents> open(std::string& why);

  /// Null, with the reason in `why`, when libpfm4 does not know the name or the kernel refuses.
  std::unique_ptr<PerfEvent> event(const char* name, std::string& why) const;
  /// Events per call, after warm-up calls that are not counted. Few events at a time, so that no
  /// two of them share a counter.
  Counts count(const Body& body, int warm_ups) const;

 private:
  friend std::unique_ptr<PerfEvents> open_libpfm(std::string& why);
  /// int pfm_get_os_event_encoding(const char*, int, pfm_os_t, void*)
  using Encode = int (*)(const char*, int, int, void*);
  explicit PerfEvents(Encode encode) noexcept : encode_(encode) {}
  Encode encode_;
};

/// Only libpfm4, without a check for hardware counters: software events work everywhere.
std::unique_ptr<PerfEvents> open_libpfm(std::string& why);

}  // namespace baregrad::lab

// The counters that this machine has.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lab/counting/callgrind.h"
#include "lab/counting/counts.h"
#include "lab/counting/perf_events.h"
#include "lab/counting/trial.h"
#include "lab/notebook.h"

namespace baregrad::lab {

/// Chooses once: the hardware's counters, else Callgrind's simulation, else none.
class Counter {
 public:
  explicit Counter(const bench::Machine& machine);

  /// "hardware", "callgrind" or "none".
  const std::string& source() const noexcept { return source_; }
  bool any() const noexcept { return source_ != "none"; }
  /// Adds a record of kind "counter" that names the source, and a note or an absence for the
  /// reader. Call it once per experiment, inside a part.
  void introduce(Notebook& notebook) const;
  /// Runs each trial separately, on one thread; one result for each.
  std::vector<Counted> count(std::span<const TrialRun> runs) const;
  /// Adds a record of kind "count" for each: `name`, `size` and `warm_ups` of the trial, `source`,
  /// and the counts. Trials that cannot be counted are recorded as absent. Without counters, adds
  /// nothing.
  void record(Notebook& notebook, std::span<const TrialRun> runs) const;

 private:
  std::unique_ptr<PerfEvents> hardware_;
  callgrind::Caches caches_;
  std::string source_;
  std::string why_no_hardware_;
  std::string why_no_simulation_;
};

}  // namespace baregrad::lab

// How the lab times: contenders take turns, so that a wandering clock and busy neighbours hit all
// of them alike.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lab/notebook.h"

namespace baregrad::lab {

/// Nanoseconds per call.
struct Timing {
  double median_ns = 0;
  double p10_ns = 0;
  double p90_ns = 0;
  int repeats = 0;
};

/// Of samples in any order; at least one.
Timing summarize(std::vector<double> samples_ns);
/// median_ns, p10_ns, p90_ns, repeats: as every record of a timing has them.
Json to_json(const Timing& timing);

/// One that takes part: nanoseconds per call, of one sample.
struct Contender {
  std::string name;
  std::function<double()> sample_ns;
};

/// Of `run(calls)`, with as many calls a sample as make the clock's own cost disappear.
Contender contender(std::string name, std::function<void(std::int64_t calls)> run);
/// The same of a function that does it once.
template <class Once>
Contender contender_once(std::string name, Once once) {
  return contender(std::move(name), [once](std::int64_t calls) {
    for (std::int64_t i = 0; i < calls; ++i) once();
  });
}

struct Turns {
  double seconds = 1;  ///< of measuring, all contenders together
  int least = 3;       ///< turns of each, however long they take
  int most = 1000;
  /// Between turns: workers of other libraries spin for milliseconds after their last region, and
  /// would take a core from whoever is next. A turn then has several samples, and one before them
  /// that does not count. 0 on one thread: a turn is a sample.
  std::chrono::milliseconds settle{0};
};

/// Nanoseconds per call, sample by sample, in the order of the contenders. Every one has a first
/// call that is not counted.
std::vector<std::vector<double>> take_samples(const std::vector<Contender>& contenders,
                                              const Turns& turns);
/// The same, summarized.
std::vector<Timing> take_turns(const std::vector<Contender>& contenders, const Turns& turns);

}  // namespace baregrad::lab

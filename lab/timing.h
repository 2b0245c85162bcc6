// Timing in the lab: contenders take turns, so that a varying clock rate and load from other
// processes affect all of them alike.
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

/// Summarizes at least one sample, in any order.
Timing summarize(std::vector<double> samples_ns);
/// median_ns, p10_ns, p90_ns, repeats: the fields of every timing record.
Json to_json(const Timing& timing);

/// A contender: a function that takes one sample, in nanoseconds per call.
struct Contender {
  std::string name;
  std::function<double()> sample_ns;
};

/// A contender for `run(calls)`. A sample has enough calls to hide the cost of reading the clock.
Contender contender(std::string name, std::function<void(std::int64_t calls)> run);
/// The same for a function that does the work once.
template <class Once>
Contender contender_once(std::string name, Once once) {
  return contender(std::move(name), [once](std::int64_t calls) {
    for (std::int64_t i = 0; i < calls; ++i) once();
  });
}

struct Turns {
  double seconds = 1;  ///< of measuring, for all contenders together
  int least = 3;       ///< least number of turns of each, however long they take
  int most = 1000;
  /// A pause between turns: workers of other libraries spin for milliseconds after their last
  /// region, and would take a core from the next contender. A turn then has several samples, after
  /// one that is not counted. 0 on one thread: a turn is one sample.
  std::chrono::milliseconds settle{0};
};

/// Nanoseconds per call, for each sample, in the order of the contenders. The first call of each is
/// not counted.
std::vector<std::vector<double>> take_samples(const std::vector<Contender>& contenders,
                                              const Turns& turns);
/// The same, summarized.
std::vector<Timing> take_turns(const std::vector<Contender>& contenders, const Turns& turns);

}  // namespace baregrad::lab

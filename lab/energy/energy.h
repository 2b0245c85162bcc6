// The experiment `energy`, with counters from any folder.
#pragma once

#include <string>

#include "lab/notebook.h"

namespace baregrad::lab {

/// If `powercap` has no readable counters, one record says so, and there are no numbers.
void measure_energy(Notebook& notebook, const std::string& powercap);

/// The same work at two speeds, over the time that the slower one takes.
struct Race {
  double slow_joules = 0;
  double fast_joules = 0;  ///< its work, and idling for the rest of the time
};
Race race_to_sleep(double slow_joules, double slow_seconds, double fast_joules, double fast_seconds,
                   double idle_watts);

}  // namespace baregrad::lab

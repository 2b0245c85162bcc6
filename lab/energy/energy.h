// The experiment `energy` with its counters in any folder.
#pragma once

#include <string>

#include "lab/notebook.h"

namespace baregrad::lab {

/// Where `powercap` has no counters that can be read, one line says so, and there is no number.
void measure_energy(Notebook& notebook, const std::string& powercap);

/// The same work, at leisure and in haste, over the time that the slower one takes.
struct Race {
  double slow_joules = 0;
  double fast_joules = 0;  ///< its work, and the rest of the time idle
};
Race race_to_sleep(double slow_joules, double slow_seconds, double fast_joules, double fast_seconds,
                   double idle_watts);

}  // namespace baregrad::lab

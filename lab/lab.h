// `baregrad lab`: experiments one after the other, then the report.
#pragma once

#include <string>
#include <vector>

#include "lab/notebook.h"

namespace baregrad::lab {

struct Run {
  std::vector<std::string> names;  ///< of experiments
  Options options;
  bool report = true;  ///< pictures and pages too, where Python can draw them
};

/// Experiments that --out has from before are not done again.
void run(const Run& run, const Notebook::Tell& progress, const Notebook::Tell& say);

}  // namespace baregrad::lab

// `baregrad lab`: experiments one after the other, then the report.
#pragma once

#include <string>
#include <vector>

#include "lab/notebook.h"

namespace baregrad::lab {

struct Run {
  std::vector<std::string> names;  ///< of experiments
  Options options;
  bool report = true;  ///< also draws pictures and pages, if Python is available
};

/// Experiments that are complete in --out are not repeated.
void run(const Run& run, const Notebook::Tell& progress, const Notebook::Tell& say);

}  // namespace baregrad::lab

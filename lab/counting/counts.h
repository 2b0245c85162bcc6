// What a processor did while it ran something, counted.
#pragma once

#include <optional>
#include <string>

#include "lab/notebook.h"

namespace baregrad::lab {

/// Per call. Hardware does not have all of them.
struct Counts {
  std::optional<double> instructions;
  std::optional<double> loads;
  std::optional<double> stores;
  std::optional<double> l1_load_misses;
  std::optional<double> l1_store_misses;
  std::optional<double> ll_load_misses;  ///< of the last level: what comes from memory
  std::optional<double> ll_store_misses;
  std::optional<double> l1i_misses;  ///< of instructions
  std::optional<double> branches;    ///< conditional and indirect ones
  std::optional<double> mispredictions;
};

struct Counted {
  std::optional<Counts> counts;
  std::string why;  ///< there are none
};

/// Those that there are, by their names.
Json to_json(const Counts& counts);

}  // namespace baregrad::lab

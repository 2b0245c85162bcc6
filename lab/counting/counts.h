// Counts of processor events.
#pragma once

#include <optional>
#include <string>

#include "lab/notebook.h"

namespace baregrad::lab {

/// Per call. Hardware may lack some of them.
struct Counts {
  std::optional<double> instructions;
  std::optional<double> loads;
  std::optional<double> stores;
  std::optional<double> l1_load_misses;
  std::optional<double> l1_store_misses;
  std::optional<double> ll_load_misses;  ///< of the last level: loads from memory
  std::optional<double> ll_store_misses;
  std::optional<double> l1i_misses;  ///< instruction fetches
  std::optional<double> branches;    ///< conditional and indirect
  std::optional<double> mispredictions;
};

struct Counted {
  std::optional<Counts> counts;
  std::string why;  ///< why there are no counts
};

/// The counts that are present, by name.
Json to_json(const Counts& counts);

}  // namespace baregrad::lab

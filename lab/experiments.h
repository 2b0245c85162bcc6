// The experiments of `baregrad lab`, by name.
#pragma once

#include <span>
#include <string_view>

#include "lab/notebook.h"

namespace baregrad::lab {

struct Experiment {
  std::string_view name;
  std::string_view question;
  std::string_view method;
  void (*run)(Notebook& notebook);
};

/// In reading order; an experiment whose results others are drawn against comes before them.
std::span<const Experiment> experiments();
/// Throws ValueError and lists the names.
const Experiment& find_experiment(std::string_view name);

// Each in a file of its own.
void run_ceilings(Notebook& notebook);
void run_ladder(Notebook& notebook);
void run_flags(Notebook& notebook);
void run_cache(Notebook& notebook);
void run_branches(Notebook& notebook);
void run_wall(Notebook& notebook);
void run_scaling(Notebook& notebook);
void run_roofline(Notebook& notebook);
void run_pages(Notebook& notebook);
void run_training(Notebook& notebook);
void run_jitter(Notebook& notebook);
void run_energy(Notebook& notebook);

}  // namespace baregrad::lab

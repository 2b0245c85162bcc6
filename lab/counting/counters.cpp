// Chooses counters, and writes their results as records.
#include "lab/counting/counters.h"

#include <fmt/format.h>

namespace baregrad::lab {
namespace {

/// Fields of Counts by name, in the order of the records.
constexpr std::pair<const char*, std::optional<double> Counts::*> kFields[] = {
    {"instructions", &Counts::instructions},
    {"loads", &Counts::loads},
    {"stores", &Counts::stores},
    {"l1_load_misses", &Counts::l1_load_misses},
    {"l1_store_misses", &Counts::l1_store_misses},
    {"ll_load_misses", &Counts::ll_load_misses},
    {"ll_store_misses", &Counts::ll_store_misses},
    {"l1i_misses", &Counts::l1i_misses},
    {"branches", &Counts::branches},
    {"mispredictions", &Counts::mispredictions},
};

Json to_json(const callgrind::Cache& cache) {
  return {{"bytes", cache.bytes}, {"ways", cache.ways}, {"line_bytes", cache.line_bytes}};
}

}  // namespace

Json to_json(const Counts& counts) {
  Json json = Json::object();
  for (const auto& [name, field] : kFields) {
    if (counts.*field) json[name] = *(counts.*field);
  }
  return json;
}

Counter::Counter(const bench::Machine& machine)
    : caches_(callgrind::choose_caches(machine)), source_("hardware") {
  hardware_ = PerfEvents::open(why_no_hardware_);
  if (hardware_) return;
  why_no_simulation_ = callgrind::why_not(caches_);
  source_ = why_no_simulation_.empty() ? "callgrind" : "none";
}

void Counter::introduce(Notebook& notebook) const {
  Json fields = {{"source", source_}};
  if (!hardware_) fields["why_no_hardware"] = why_no_hardware_;
  if (source_ == "callgrind") {
    fields["simulated_l1i"] = to_json(caches_.instructions);
    fields["simulated_l1"] = to_json(caches_.data);
    fields["simulated_ll"] = to_json(caches_.last);
    notebook.note(fmt::format(
        "This machine gives no hardware counters ({}). Misses, branches and instructions are those "
        "of the same kernels in a simulation, Callgrind, with a first-level cache of {} KiB and a "
        "last-level cache of {} KiB. It knows no level between them and no prefetching.",
        why_no_hardware_, caches_.data.bytes >> 10, caches_.last.bytes >> 10));
  }
  notebook.add("counter", fields);
  if (!any()) {
    notebook.absent("counting of misses, branches and instructions",
                    fmt::format("no hardware counters ({}) and no simulation of them ({})",
                                why_no_hardware_, why_no_simulation_));
  }
}

std::vector<Counted> Counter::count(std::span<const TrialRun> runs) const {
  if (source_ == "callgrind") return callgrind::count(runs, caches_);
  std::vector<Counted> results;
  for (const TrialRun& run : runs) {
    if (hardware_) {
      results.push_back({hardware_->count(prepare_trial(run.name, run.size), run.warm_ups), ""});
    } else {
      results.push_back({std::nullopt, why_no_simulation_});
    }
  }
  return results;
}

void Counter::record(Notebook& notebook, std::span<const TrialRun> runs) const {
  if (!any()) return;
  const std::vector<Counted> results = count(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!results[i].counts) {
      notebook.absent(fmt::format("the count of {} at {}", runs[i].name, runs[i].size),
                      results[i].why);
      continue;
    }
    Json fields = {{"name", runs[i].name},
                   {"size", runs[i].size},
                   {"warm_ups", runs[i].warm_ups},
                   {"source", source_}};
    fields.update(lab::to_json(*results[i].counts));
    notebook.add("count", fields);
  }
}

}  // namespace baregrad::lab

// Runs experiments and passes their records to Python.
#include "lab/lab.h"

#include <chrono>

#include <fmt/format.h>

#include "baregrad/error.h"
#include "lab/child.h"
#include "lab/experiments.h"
#include "lab/python_peer.h"

namespace baregrad::lab {
namespace {

using Clock = std::chrono::steady_clock;

void run_one(const Experiment& experiment, const Options& options, const std::string& number,
             const Notebook::Tell& progress, const Notebook::Tell& say) {
  const Clock::time_point start = Clock::now();
  const auto told = [&](const std::string& text) { progress(number + " " + text); };
  Notebook notebook(experiment.name, experiment.question, experiment.method, options, told, say);
  if (notebook.finished()) {
    say(fmt::format("{} {}: there from before{}", number, experiment.name,
                    notebook.of_another_build()
                        ? ", measured by another build of baregrad; remove '" +
                              notebook.file(".jsonl") + "' to do it again"
                        : ""));
    return;
  }
  experiment.run(notebook);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  notebook.finish(seconds);
  say(fmt::format("{} {}: {:.0f} s", number, experiment.name, seconds));
}

void write_report(const Options& options, const Notebook::Tell& progress,
                  const Notebook::Tell& say) {
  progress("report");
  std::string why;
  const std::string python = find_python(why);
  if (python.empty()) {
    say("report: left out: " + why);
    return;
  }
  const Outcome outcome = run_child({python, "-m", "baregrad.lab", "report", options.out});
  if (outcome.status == 0) {
    say("report: " + outcome.last_line());
    return;
  }
  say(fmt::format("report: left out: `{} -m baregrad.lab report {}` failed: {}", python,
                  options.out, outcome.last_line()));
}

}  // namespace

void run(const Run& run, const Notebook::Tell& progress, const Notebook::Tell& say) {
  // Checks all names before the first experiment runs.
  std::vector<const Experiment*> chosen;
  for (const std::string& name : run.names) chosen.push_back(&find_experiment(name));
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    run_one(*chosen[i], run.options, fmt::format("[{}/{}]", i + 1, chosen.size()), progress, say);
  }
  if (run.report) write_report(run.options, progress, say);
}

}  // namespace baregrad::lab

// `baregrad lab`: which experiments to run, where to write, and what to print meanwhile.
#include <csignal>
#include <string_view>

#include <unistd.h>

#include <fmt/format.h>

#include "baregrad/error.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "lab/child.h"
#include "lab/counting/trial.h"
#include "lab/experiments.h"
#include "lab/scratch_folder.h"

namespace baregrad::cli {
namespace {

constexpr const char* kAll = "all";
constexpr const char* kList = "list";

int list_experiments() {
  Output out;
  for (const lab::Experiment& experiment : lab::experiments()) {
    out.print(fmt::format("{:<10} {}\n", experiment.name, experiment.question));
  }
  out.finish();
  return 0;
}

/// "all" stands for every experiment.
std::vector<std::string> expand(const std::vector<std::string>& names) {
  std::vector<std::string> expanded;
  for (const std::string& name : names) {
    if (name != kAll) {
      expanded.push_back(name);
      continue;
    }
    for (const lab::Experiment& experiment : lab::experiments()) {
      expanded.emplace_back(experiment.name);
    }
  }
  return expanded;
}

volatile pid_t command_process = 0;
volatile std::sig_atomic_t clears_line = 0;

/// Finished parts are in the file already, so the process can end at once. Only async-signal-safe
/// functions are called.
extern "C" void on_stop(int signal) {
  // Not in a child forked by an experiment: the same signal reaches the child and its parent.
  if (::getpid() == command_process) {
    lab::end_children();
    lab::remove_scratch_folders();
    constexpr std::string_view kTerminal = "\r\033[K";
    constexpr std::string_view kGoOn =
        "lab: stopped; the same command goes on with the part that was interrupted\n";
    if (clears_line != 0) {
      (void)!::write(STDERR_FILENO, kTerminal.data(), kTerminal.size());
    }
    (void)!::write(STDERR_FILENO, kGoOn.data(), kGoOn.size());
  }
  ::_exit(128 + signal);
}

/// While an object of this class lives, Ctrl-C and SIGTERM end the experiments and their children.
class StopScope {
 public:
  StopScope() {
    command_process = ::getpid();
    clears_line = has_capable_terminal() ? 1 : 0;
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, on_stop);
  }
  ~StopScope() {
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  }
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;
};

}  // namespace

int run_lab(lab::Run run) {
  if (run.names == std::vector<std::string>{kList}) return list_experiments();
  if (run.options.out.empty()) {
    throw ValueError("lab: where to? --out DIR names the folder of the results");
  }
  run.names = expand(run.names);
  const StopScope stops;
  Progress progress;
  lab::run(
      run, [&](const std::string& text) { progress.show(text); },
      [&](const std::string& text) {
        progress.clear();
        cli::say(text);
      });
  return 0;
}

int run_lab_trial(const std::vector<std::string>& arguments) {
  lab::run_trials(lab::from_arguments(arguments));
  return 0;
}

}  // namespace baregrad::cli

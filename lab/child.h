// Child processes: compilers, valgrind, Python.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace baregrad::lab {

struct Outcome {
  int status = -1;     ///< exit status; 127 if there is no such program; 128 + signal
  std::string output;  ///< of both standard output and standard error

  /// The last line, where programs usually say why they failed, without its newline.
  std::string last_line() const;
};

/// Runs a program found in PATH to its end, with additions to the environment. It has no input.
/// Like all children it has its own process group: this process receives Ctrl-C and passes it on.
Outcome run_child(const std::vector<std::string>& arguments,
                  const std::vector<std::pair<std::string, std::string>>& environment = {});

/// A program whose standard input and output are pipes; it shares standard error.
struct Piped {
  int process = -1;
  int to = -1;
  int from = -1;
};
Piped start_child(const std::vector<std::string>& arguments,
                  const std::vector<std::pair<std::string, std::string>>& environment = {});
/// Exit status as in Outcome.
int wait_for(int process);

/// Ends all children that were started here and not yet waited for, with their process groups. Safe
/// in signal handlers: it only sends signals.
void end_children() noexcept;

/// The path of this program.
std::string own_path();

}  // namespace baregrad::lab

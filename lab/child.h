// Other programs: compilers, valgrind, Python.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace baregrad::lab {

struct Outcome {
  int status = -1;     ///< exit status; 127 when there is no such program; 128 + signal
  std::string output;  ///< of both standard output and standard error

  /// Where programs say why they failed, without its end.
  std::string last_line() const;
};

/// Runs a program found in PATH to its end, with additions to the environment. It has no input, and
/// like all children a process group of its own: Ctrl-C is for us, who pass it on.
Outcome run_child(const std::vector<std::string>& arguments,
                  const std::vector<std::pair<std::string, std::string>>& environment = {});

/// A program with its standard input and output as pipes; its standard error is ours.
struct Piped {
  int process = -1;
  int to = -1;
  int from = -1;
};
Piped start_child(const std::vector<std::string>& arguments,
                  const std::vector<std::pair<std::string, std::string>>& environment = {});
/// Exit status as in Outcome.
int wait_for(int process);

/// Ends all that were started here and have not been waited for, and theirs. For handlers of
/// signals: it only sends signals.
void end_children() noexcept;

/// The file of the program that runs.
std::string own_path();

}  // namespace baregrad::lab

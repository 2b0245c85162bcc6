// The parts of a run, made from the names in its config; the parts of its checkpoints.
#pragma once

#include <charconv>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "baregrad/error.h"
#include "baregrad/io.h"
#include "baregrad/optim.h"
#include "baregrad/train.h"
#include "core/message.h"

namespace baregrad::train {

/// In the order of optim::AllOptimizers.
std::vector<std::string> optimizer_names();
std::unique_ptr<optim::Optimizer> make_optimizer(const Config& config,
                                                 const std::vector<Tensor>& params);
std::unique_ptr<optim::LRScheduler> make_schedule(const Config& config, optim::Optimizer& optimizer,
                                                  std::int64_t total_steps);

/// A path quoted for a shell, for commands in messages.
std::string shell_path(const std::string& path);

std::string checkpoints_of(const std::string& folder);
/// Whether a folder holds a run: a checkpoint, valid or damaged.
bool has_run(const std::string& folder);
/// Throws IoError if there is no run; the message tells how to start one and begins with `who`.
void check_has_run(const std::string& folder, const char* who);
/// The newest checkpoint that can be loaded. Throws IoError if there is no run or none can be
/// loaded.
io::CheckpointFolder::Found newest_checkpoint(const std::string& folder, const char* who);
/// Throws IoError if the part is missing.
const State& part_of(const io::Checkpoint& checkpoint, const char* name);

void save_scaling(const data::Scaling& scaling, State& state);
data::Scaling load_scaling(const State& state);
void save_names(const std::vector<std::string>& names, State& state);
std::vector<std::string> load_names(const State& state);

/// A number in a checkpoint. Throws IoError if it is missing or is not a number.
template <class T>
T number(const std::map<std::string, std::string>& values, const char* name) {
  const auto found = values.find(name);
  T value{};
  if (found != values.end()) {
    const std::string& text = found->second;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end.ec == std::errc() && end.ptr == text.data() + text.size()) return value;
  }
  throw IoError(message("train: the checkpoint has no number '", name, "'"));
}
template <class T>
T number(const State& state, const char* name) {
  return number<T>(state.values, name);
}

}  // namespace baregrad::train

// Optimizers and schedules by name; parts of a checkpoint.
#include "train/parts.h"

#include <type_traits>
#include <utility>

#include "core/number_text.h"

namespace baregrad::train {

namespace {

/// The name of an optimizer on the command line: "rmsprop" for RMSprop.
template <class T>
std::string name_of() {
  std::string name = T::Options::kName;
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

template <class T>
std::unique_ptr<optim::Optimizer> make(const Config& config, const std::vector<Tensor>& params) {
  typename T::Options options;
  options.lr = config.lr;
  options.weight_decay = config.weight_decay;
  if constexpr (std::is_same_v<T, optim::SGD>) {
    options.momentum = 0.9;
    options.nesterov = true;
  }
  return std::make_unique<T>(params, options);
}

template <class... T>
std::vector<std::string> names_of(optim::OptimizerList<T...>) {
  return {name_of<T>()...};
}

template <class... T>
std::unique_ptr<optim::Optimizer> make_one_of(optim::OptimizerList<T...>, const Config& config,
                                              const std::vector<Tensor>& params) {
  std::unique_ptr<optim::Optimizer> made;
  static_cast<void>(
      ((name_of<T>() == config.optimizer && (made = make<T>(config, params))) || ...));
  return made;
}

}  // namespace

std::vector<std::string> optimizer_names() { return names_of(optim::AllOptimizers()); }

std::unique_ptr<optim::Optimizer> make_optimizer(const Config& config,
                                                 const std::vector<Tensor>& params) {
  return make_one_of(optim::AllOptimizers(), config, params);
}

std::unique_ptr<optim::LRScheduler> make_schedule(const Config& config, optim::Optimizer& optimizer,
                                                  std::int64_t total_steps) {
  if (config.schedule == "onecycle") {
    // One more than the training steps: the schedule also steps after the last one.
    return std::make_unique<optim::OneCycleLR>(
        optimizer, optim::OneCycleOptions{.max_lr = {config.lr}, .total_steps = total_steps + 1});
  }
  optim::Curve curve = [](std::int64_t, double base) { return base; };
  if (config.schedule == "cosine") curve = optim::cosine_curve(total_steps);
  if (config.schedule == "step") {
    curve = optim::step_curve(std::max<std::int64_t>(1, total_steps / 3), 0.3);
  }
  return std::make_unique<optim::LRScheduler>(optimizer, std::move(curve));
}

std::string shell_path(const std::string& path) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=@%+";
  if (!path.empty() && path.find_first_not_of(kPlain) == std::string::npos) return path;
  std::string word = "'";
  for (const char c : path) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

std::string checkpoints_of(const std::string& folder) { return folder + "/checkpoints"; }

bool has_run(const std::string& folder) {
  return !io::CheckpointFolder(checkpoints_of(folder)).steps().empty();
}

void check_has_run(const std::string& folder, const char* who) {
  if (has_run(folder)) return;
  throw IoError(message(who, ": there is no checkpoint in '", checkpoints_of(folder),
                        "'; `baregrad train --out ", shell_path(folder), "` begins a run there"));
}

io::CheckpointFolder::Found newest_checkpoint(const std::string& folder, const char* who) {
  if (auto found = io::CheckpointFolder(checkpoints_of(folder)).latest()) return std::move(*found);
  check_has_run(folder, who);
  return newest_checkpoint(folder, who);  // one was written in the meantime
}

const State& part_of(const io::Checkpoint& checkpoint, const char* name) {
  const auto found = checkpoint.parts.find(name);
  if (found != checkpoint.parts.end()) return found->second;
  throw IoError(message("train: the checkpoint has no part '", name, "'"));
}

void save_scaling(const data::Scaling& scaling, State& state) {
  state.values["mean"] = number_text(static_cast<double>(scaling.mean));
  state.values["std"] = number_text(static_cast<double>(scaling.std));
}

data::Scaling load_scaling(const State& state) {
  return {static_cast<float>(number<double>(state, "mean")),
          static_cast<float>(number<double>(state, "std"))};
}

void save_names(const std::vector<std::string>& names, State& state) {
  for (std::size_t i = 0; i < names.size(); ++i) state.values[std::to_string(i)] = names[i];
}

std::vector<std::string> load_names(const State& state) {
  std::vector<std::string> names;
  for (;;) {
    const auto found = state.values.find(std::to_string(names.size()));
    if (found == state.values.end()) return names;
    names.push_back(found->second);
  }
}

}  // namespace baregrad::train

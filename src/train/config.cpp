// train/: one network from data to a folder of checkpoints. Stands on nn, optim, data and io; knows
// nothing of terminals. Here: what can be asked for.
#include <charconv>
#include <span>
#include <string_view>
#include <system_error>

#include "baregrad/error.h"
#include "baregrad/train.h"
#include "core/message.h"
#include "core/number_text.h"

namespace baregrad::train {

namespace {

void check_member(const std::string& value, const char* what,
                  std::initializer_list<const char*> possible) {
  std::string names;
  for (const char* name : possible) {
    if (value == name) return;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  throw ValueError(message("train: there is no ", what, " '", value, "'; there are ", names));
}

void check_range(double value, const char* what, double low, double high) {
  if (value >= low && value <= high) return;
  throw ValueError(message("train: ", what, " must be from ", number_text(low), " to ",
                           number_text(high), ", not ", number_text(value)));
}

template <class T>
T read(const std::map<std::string, std::string>& values, const char* name) {
  const auto found = values.find(name);
  if (found == values.end()) {
    throw IoError(message("train: the checkpoint does not say '", name, "'"));
  }
  const std::string& text = found->second;
  if constexpr (std::is_same_v<T, std::string>) {
    return text;
  } else {
    T value{};
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end.ec != std::errc() || end.ptr != text.data() + text.size()) {
      throw IoError(message("train: the checkpoint has '", text, "' where '", name, "' should be"));
    }
    return value;
  }
}

std::string join(std::span<const std::int64_t> numbers) {
  std::string text;
  for (const std::int64_t number : numbers) {
    text += (text.empty() ? "" : ",") + std::to_string(number);
  }
  return text;
}

std::vector<std::int64_t> split(std::string_view text) {
  std::vector<std::int64_t> numbers;
  while (!text.empty()) {
    std::int64_t number = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
    if (end.ec != std::errc()) break;
    numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end.ptr - text.data()));
    if (!text.empty()) text.remove_prefix(1);
  }
  return numbers;
}

}  // namespace

void Config::check() const {
  if (!data.empty()) check_member(data, "data", {"mnist", "fashion", "digits"});
  check_member(model, "model", {"mlp", "cnn"});
  check_member(optimizer, "optimizer", {"sgd", "adam", "adamw", "rmsprop", "adagrad", "lion"});
  check_member(schedule, "schedule", {"constant", "cosine", "onecycle", "step"});
  check_member(alloc, "allocator", {"pool", "arena", "system"});
  constexpr double kMany = 1e9;
  for (const std::int64_t size : hidden) {
    check_range(static_cast<double>(size), "the size of a hidden layer", 1, 1e6);
  }
  check_range(static_cast<double>(epochs), "the number of epochs", 1, kMany);
  check_range(static_cast<double>(batch), "the batch size", 1, kMany);
  check_range(lr, "the learning rate", 0, 1e3);
  check_range(weight_decay, "the weight decay", 0, 1e3);
  check_range(dropout, "dropout", 0, 1);
  check_range(static_cast<double>(items), "the number of training images", 0, kMany);
  check_range(static_cast<double>(test_items), "the number of test images", 0, kMany);
  check_range(workers, "the number of workers", 0, 64);
  check_range(static_cast<double>(checkpoint_steps), "the steps between checkpoints", 0, kMany);
  check_range(keep, "the number of checkpoints kept", 1, 1e6);
}

std::map<std::string, std::string> Config::values() const {
  return {{"data", data},
          {"data_folder", data_folder},
          {"model", model},
          {"hidden", join(hidden)},
          {"epochs", std::to_string(epochs)},
          {"batch", std::to_string(batch)},
          {"lr", number_text(lr)},
          {"weight_decay", number_text(weight_decay)},
          {"dropout", number_text(dropout)},
          {"optimizer", optimizer},
          {"schedule", schedule},
          {"seed", std::to_string(seed)},
          {"items", std::to_string(items)},
          {"test_items", std::to_string(test_items)},
          {"workers", std::to_string(workers)},
          {"alloc", alloc},
          {"checkpoint_steps", std::to_string(checkpoint_steps)},
          {"keep", std::to_string(keep)}};
}

Config Config::from_values(const std::map<std::string, std::string>& values) {
  Config config;
  config.data = read<std::string>(values, "data");
  config.data_folder = read<std::string>(values, "data_folder");
  config.model = read<std::string>(values, "model");
  config.hidden = split(read<std::string>(values, "hidden"));
  config.epochs = read<std::int64_t>(values, "epochs");
  config.batch = read<std::int64_t>(values, "batch");
  config.lr = read<double>(values, "lr");
  config.weight_decay = read<double>(values, "weight_decay");
  config.dropout = read<double>(values, "dropout");
  config.optimizer = read<std::string>(values, "optimizer");
  config.schedule = read<std::string>(values, "schedule");
  config.seed = read<std::uint64_t>(values, "seed");
  config.items = read<std::int64_t>(values, "items");
  config.test_items = read<std::int64_t>(values, "test_items");
  config.workers = read<int>(values, "workers");
  config.alloc = read<std::string>(values, "alloc");
  config.checkpoint_steps = read<std::int64_t>(values, "checkpoint_steps");
  config.keep = read<int>(values, "keep");
  config.check();
  return config;
}

}  // namespace baregrad::train

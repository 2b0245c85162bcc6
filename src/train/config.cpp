// train/: trains one network, from data to a folder of checkpoints. Built on nn, optim, data and
// io, without terminal output. Here: the configuration, its checks and its text form.
#include <algorithm>
#include <charconv>
#include <span>
#include <string_view>
#include <system_error>

#include "baregrad/data_sets.h"
#include "baregrad/error.h"
#include "baregrad/train.h"
#include "core/made_once.h"
#include "core/message.h"
#include "core/number_text.h"
#include "core/printable.h"
#include "core/utf8.h"
#include "train/parts.h"

namespace baregrad::train {

namespace {

constexpr std::size_t kMostQuoted = 60;

void check_member(const std::string& value, const char* member, const char* what) {
  std::string names;
  for (const std::string& name : Config::choices(member)) {
    if (value == name) return;
    if (!names.empty()) names += ", ";
    names += name;
  }
  throw ValueError(message("train: there is no ", what, " ", quoted_text(value, kMostQuoted),
                           "; there are ", names));
}

void check_range(double value, const char* what, double low, double high) {
  if (value >= low && value <= high) return;
  throw ValueError(message("train: ", what, " must be from ", number_text(low), " to ",
                           number_text(high), ", not ", number_text(value)));
}

const std::string& text(const std::map<std::string, std::string>& values, const char* name) {
  const auto found = values.find(name);
  if (found != values.end()) return found->second;
  throw IoError(message("train: the checkpoint does not say '", name, "'"));
}

std::string join(std::span<const std::int64_t> numbers) {
  std::string list;
  for (const std::int64_t one : numbers) {
    if (!list.empty()) list += ',';
    list += std::to_string(one);
  }
  return list;
}

std::vector<std::int64_t> split(std::string_view list) {
  std::vector<std::int64_t> numbers;
  if (list.empty()) return numbers;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const char* last = list.data() + end;
    std::int64_t one = 0;
    const auto read = std::from_chars(list.data() + begin, last, one);
    if (read.ec != std::errc() || read.ptr != last) {
      throw IoError(message("train: the checkpoint's 'hidden' is ", quoted_text(list, kMostQuoted),
                            ", no list of whole numbers"));
    }
    numbers.push_back(one);
    begin = end + 1;
  }
  return numbers;
}

// A path is any bytes; a config is text that JSON can hold. Bytes that are not UTF-8 are written as
// \xNN, a backslash as two.
std::string escaped_path(std::string_view path) {
  std::string text;
  while (!path.empty()) {
    const std::size_t length = utf8_length(path);
    if (length == 0) {
      text += "\\x";
      append_hex(text, static_cast<unsigned char>(path[0]), 2);
    } else {
      if (path[0] == '\\') text += '\\';
      text += path.substr(0, length);
    }
    path.remove_prefix(std::max<std::size_t>(1, length));
  }
  return text;
}

std::string unescaped_path(std::string_view text) {
  constexpr std::size_t kEscape = 4;
  std::string path;
  while (!text.empty()) {
    unsigned byte = 0;
    const bool is_escape = text.starts_with("\\x") && text.size() >= kEscape &&
                           std::from_chars(text.data() + 2, text.data() + kEscape, byte, 16).ptr ==
                               text.data() + kEscape;
    if (is_escape) {
      path += static_cast<char>(byte);
      text.remove_prefix(kEscape);
      continue;
    }
    if (text.starts_with("\\\\")) text.remove_prefix(1);
    path += text.front();
    text.remove_prefix(1);
  }
  return path;
}

}  // namespace

namespace {
using Choices = std::map<std::string, std::vector<std::string>>;
constinit MadeOnce<const Choices> g_choices;
}  // namespace

const std::vector<std::string>& Config::choices(const std::string& member) {
  const Choices& all = g_choices.get([] {
    return new Choices{{"data", data::dataset_names()},
                       {"model", {"mlp", "cnn"}},
                       {"optimizer", optimizer_names()},
                       {"schedule", {"constant", "cosine", "onecycle", "step"}},
                       {"alloc", {"pool", "arena", "system"}}};
  });
  const auto found = all.find(member);
  if (found != all.end()) return found->second;
  throw ValueError(message("train: '", member, "' is not chosen from a list"));
}

void Config::check() const {
  if (!data.empty()) check_member(data, "data", "data");
  check_member(model, "model", "model");
  check_member(optimizer, "optimizer", "optimizer");
  check_member(schedule, "schedule", "schedule");
  check_member(alloc, "alloc", "allocator");
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
          {"data_folder", escaped_path(data_folder)},
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
  config.data = text(values, "data");
  config.data_folder = unescaped_path(text(values, "data_folder"));
  if (config.data_folder.find('\0') != std::string::npos) {
    throw IoError("train: the checkpoint's 'data_folder' holds a NUL");
  }
  config.model = text(values, "model");
  config.hidden = split(text(values, "hidden"));
  config.epochs = number<std::int64_t>(values, "epochs");
  config.batch = number<std::int64_t>(values, "batch");
  config.lr = number<double>(values, "lr");
  config.weight_decay = number<double>(values, "weight_decay");
  config.dropout = number<double>(values, "dropout");
  config.optimizer = text(values, "optimizer");
  config.schedule = text(values, "schedule");
  config.seed = number<std::uint64_t>(values, "seed");
  config.items = number<std::int64_t>(values, "items");
  config.test_items = number<std::int64_t>(values, "test_items");
  config.workers = number<int>(values, "workers");
  config.alloc = text(values, "alloc");
  config.checkpoint_steps = number<std::int64_t>(values, "checkpoint_steps");
  config.keep = number<int>(values, "keep");
  config.check();
  return config;
}

}  // namespace baregrad::train

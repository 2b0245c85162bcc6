// Checkpoints: the states of all parts in one safetensors file, and the folder that keeps the
// latest.
#include <algorithm>
#include <charconv>
#include <compare>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <string_view>

#include <zlib.h>

#include "baregrad/error.h"
#include "baregrad/io.h"
#include "core/host.h"
#include "core/message.h"
#include "io/atomic_file.h"
#include "io/formats.h"
#include "io/input.h"
#include "io/output.h"
#include "io/system_calls.h"
#include "io/text.h"

namespace baregrad::io {

namespace {

namespace fs = std::filesystem;

// The format's own keys begin with '/'; names of parts never do.
constexpr const char* kFormatKey = "/format";
constexpr const char* kFormat = "baregrad checkpoint 1";
constexpr const char* kPartsKey = "/parts";  // all part names, since a part may hold nothing
constexpr const char* kChecksumKey = "/crc32";
constexpr const char* kGenerationKey = "/generation";  // only if it is not 0
constexpr std::string_view kEmptyName = "%00";

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";

std::string escaped(std::string_view part) {
  if (part.empty()) return std::string(kEmptyName);
  std::string out;
  for (const char c : part) {
    if (c == '%') {
      out += "%25";
    } else if (c == '/') {
      out += "%2F";
    } else {
      out += c;
    }
  }
  return out;
}

/// The inverse. Empty for text that escaped() never returns.
std::optional<std::string> unescaped(std::string_view text) {
  if (text == kEmptyName) return std::string();
  if (text.empty()) return {};
  std::string out;
  while (!text.empty()) {
    const bool percent = text.starts_with("%25");
    if (percent || text.starts_with("%2F")) {
      out += percent ? '%' : '/';
      text.remove_prefix(3);
      continue;
    }
    if (text.front() == '%') return {};
    out += text.front();
    text.remove_prefix(1);
  }
  return out;
}

/// The checksum covers names, dtypes, shapes, elements and values, in the order of the header.
std::string checksum(const NamedTensors& tensors, const Metadata& metadata) {
  uLong crc = crc32(0, nullptr, 0);
  const auto add = [&](std::string_view text) {
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(text.data()), text.size());
  };
  const auto add_text = [&](std::string_view text) { add(message(text.size(), ":", text)); };
  for (const auto& [key, value] : metadata) {
    if (key == kChecksumKey) continue;
    add_text(key);
    add_text(value);
  }
  for (const NamedTensor& entry : tensors) {
    add_text(entry.name);
    add_text(describe(entry.tensor));
    write_elements(entry.tensor, add);
  }
  return std::to_string(crc);
}

/// The part that a name of the file belongs to, and the name within the part.
std::pair<State*, std::string> locate(Checkpoint& checkpoint, const std::string& key,
                                      const std::string& where) {
  const std::size_t slash = key.find('/');
  if (slash != std::string::npos) {
    const std::optional<std::string> part = unescaped(std::string_view(key).substr(0, slash));
    const auto found = part ? checkpoint.parts.find(*part) : checkpoint.parts.end();
    if (found != checkpoint.parts.end()) return {&found->second, key.substr(slash + 1)};
  }
  throw IoError(message(where, ": ", quoted_name(key), " belongs to no part of the checkpoint"));
}

std::int64_t step_of(const std::string& file) {
  constexpr std::size_t kLeastDigits = 9;
  std::string_view digits = file;
  if (!digits.starts_with(kPrefix) || !digits.ends_with(kSuffix)) return -1;
  digits.remove_prefix(kPrefix.size());
  digits.remove_suffix(std::min(kSuffix.size(), digits.size()));
  std::int64_t step = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && digits.size() >= kLeastDigits ? step : -1;
}

void save_as(const std::string& path, const Checkpoint& checkpoint, std::int64_t generation,
             const char* who) {
  NamedTensors tensors;
  Metadata metadata;
  std::string parts;
  for (const auto& [part, state] : checkpoint.parts) {
    check_name(part, "the part", who);
    const std::string prefix = escaped(part) + '/';
    parts += prefix;
    for (const NamedTensor& entry : state.tensors) {
      tensors.push_back({prefix + entry.name, entry.tensor});
    }
    for (const auto& [key, value] : state.values) metadata[prefix + key] = value;
  }
  check_named(tensors, who);
  // The elements are read twice. They are copied from their device once.
  for (NamedTensor& entry : tensors) entry.tensor = on_host(entry.tensor);
  metadata[kFormatKey] = kFormat;
  metadata[kPartsKey] = parts;
  if (generation != 0) metadata[kGenerationKey] = std::to_string(generation);
  metadata[kChecksumKey] = checksum(tensors, metadata);
  save_safetensors_as(path, tensors, metadata, who);
}

Checkpoint load_as(const std::string& path, const LoadOptions& options, const char* who) {
  // The checksum is computed on the CPU.
  const Device device = device_for(options, who);
  SafeTensors file = load_safetensors_as(path, {.mmap = options.mmap, .device = Device()}, who);
  const std::string where = message(who, ": '", path, "'");
  Metadata& metadata = file.metadata;
  if (metadata[kFormatKey] != kFormat) {
    throw IoError(message(where, ": not a checkpoint: its metadata has no ", quoted_name(kFormat)));
  }
  if (metadata[kChecksumKey] != checksum(file.tensors, metadata)) {
    throw IoError(message(where, ": its checksum does not fit: the file is damaged"));
  }
  Checkpoint out;
  std::string_view parts = metadata[kPartsKey];
  while (!parts.empty()) {
    const std::size_t slash = std::min(parts.find('/'), parts.size());
    const std::optional<std::string> part = unescaped(parts.substr(0, slash));
    // Metadata values may contain characters that names may not.
    if (!part || name_fault(*part) != nullptr) {
      throw IoError(message(where, ": damaged list of parts"));
    }
    out.parts[*part];
    parts.remove_prefix(std::min(slash + 1, parts.size()));
  }
  for (NamedTensor& entry : file.tensors) {
    auto [state, name] = locate(out, entry.name, where);
    state->tensors.push_back({std::move(name), entry.tensor.to(device)});
    entry.tensor = Tensor();
  }
  for (auto& [key, value] : metadata) {
    if (key == kFormatKey || key == kPartsKey || key == kChecksumKey || key == kGenerationKey) {
      continue;
    }
    auto [state, name] = locate(out, key, where);
    state->values[std::move(name)] = std::move(value);
  }
  return out;
}

/// Empty for a file that cannot be read.
std::optional<std::int64_t> generation_of(const std::string& path) {
  try {
    const Metadata metadata = load_metadata(path, "CheckpointFolder");
    const auto found = metadata.find(kGenerationKey);
    if (found == metadata.end()) return 0;
    const std::string& text = found->second;
    std::int64_t generation = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), generation);
    // An upper limit, so that counting up never overflows.
    constexpr std::int64_t kMost = std::int64_t{1} << 62;
    const bool whole = end.ec == std::errc() && end.ptr == text.data() + text.size();
    if (whole && generation > 0 && generation < kMost) return generation;
  } catch (const IoError&) {  // NOLINT(bugprone-empty-catch): said above
  }
  return {};
}

struct Kept {
  std::int64_t generation = 0;
  std::int64_t step = 0;
  auto operator<=>(const Kept&) const = default;
};

/// Oldest first. A file that cannot be read counts as the newest generation.
std::vector<Kept> by_age(const std::vector<std::int64_t>& steps,
                         const std::map<std::int64_t, std::optional<std::int64_t>>& generations) {
  std::int64_t newest = 0;
  for (const auto& [step, generation] : generations) {
    newest = std::max(newest, generation.value_or(0));
  }
  std::vector<Kept> out;
  out.reserve(steps.size());
  for (const std::int64_t step : steps) {
    out.push_back({generations.at(step).value_or(newest), step});
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// Removes temporary files of interrupted saves.
void remove_cut_off_saves(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const std::size_t target = name.find(kSuffix);
    if (target == std::string::npos) continue;
    const std::string whole = name.substr(0, target + kSuffix.size());
    if (step_of(whole) >= 0 && is_temporary_of(name, whole)) {
      remove_abandoned(entry.path().string());
    }
  }
}

}  // namespace

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  save_as(path, checkpoint, 0, "save_checkpoint");
}

Checkpoint load_checkpoint(const std::string& path, const LoadOptions& options) {
  return load_as(path, options, "load_checkpoint");
}

/// What an object knows about its folder: files need not be opened again at each save.
struct CheckpointFolder::Known {
  std::mutex mutex;  // several threads may save
  bool made = false;
  std::map<std::int64_t, std::optional<std::int64_t>> generations;  // by step
};

CheckpointFolder::CheckpointFolder(std::string folder, int keep)
    : folder_(std::move(folder)), keep_(keep), known_(std::make_shared<Known>()) {
  constexpr const char* kWho = "CheckpointFolder";
  if (keep < 1) throw ValueError(message(kWho, ": keep must be at least 1, is ", keep));
  check_path(folder_, kWho);
  std::error_code error;
  const fs::file_status status = fs::status(folder_, error);
  const bool absent = status.type() == fs::file_type::not_found && !folder_.empty();
  if (absent ? error == std::errc::not_a_directory : !fs::is_directory(status)) {
    throw IoError(message(kWho, ": cannot read '", folder_,
                          "': ", error ? error.message() : "it is not a folder"));
  }
}

std::string CheckpointFolder::path_of(std::int64_t step) const {
  if (step < 0) throw ValueError(message("CheckpointFolder: step ", step, " is negative"));
  char number[24];
  std::snprintf(number, sizeof number, "%09lld", static_cast<long long>(step));
  return (fs::path(folder_) / message(kPrefix, number, kSuffix)).string();
}

std::vector<std::int64_t> CheckpointFolder::steps() const {
  std::vector<std::int64_t> out;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    const std::int64_t step = step_of(at->path().filename().string());
    // 000000012 and 0000000012 would be the same step; only the first is written by this class.
    if (step >= 0 && at->path().string() == path_of(step)) out.push_back(step);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw IoError(message("CheckpointFolder: cannot read '", folder_, "': ", error.message()));
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string CheckpointFolder::save(std::int64_t step, const Checkpoint& checkpoint) {
  constexpr const char* kWho = "CheckpointFolder::save";
  std::string path = path_of(step);
  const std::lock_guard guard(known_->mutex);
  if (!known_->made) make_folder(folder_, kWho);
  known_->made = true;

  std::vector<std::int64_t> others = steps();
  auto& generations = known_->generations;
  std::erase_if(generations, [&](const auto& item) {
    return !std::binary_search(others.begin(), others.end(), item.first);
  });
  for (const std::int64_t other : others) {
    if (!generations.contains(other)) generations[other] = generation_of(path_of(other));
  }
  std::vector<Kept> old = by_age(others, generations);
  std::int64_t generation = 0;
  if (!old.empty()) generation = old.back().generation + (old.back().step > step ? 1 : 0);
  save_as(path, checkpoint, generation, kWho);
  generations[step] = generation;

  // From here on the new file is safe. Failing to remove an old one does not stop a run.
  std::erase_if(old, [&](const Kept& kept) { return kept.step == step; });
  const auto kept = static_cast<std::size_t>(keep_ - 1);
  for (std::size_t i = 0; i + kept < old.size(); ++i) {
    system_calls.unlink(path_of(old[i].step).c_str());
  }
  remove_cut_off_saves(folder_);
  return path;
}

std::optional<CheckpointFolder::Found> CheckpointFolder::latest() const {
  constexpr const char* kWho = "CheckpointFolder::latest";
  constexpr int kTries = 100;
  // An active run may remove the files that were just listed. Then there are newer ones.
  for (int i = 0; i < kTries; ++i) {
    const std::vector<std::int64_t> all = steps();
    if (all.empty()) return {};
    std::map<std::int64_t, std::optional<std::int64_t>> generations;
    for (const std::int64_t step : all) generations[step] = generation_of(path_of(step));
    std::vector<Kept> order = by_age(all, generations);
    bool removed = false;
    Found found;
    for (; !order.empty(); order.pop_back()) {
      found.step = order.back().step;
      found.path = path_of(found.step);
      try {
        found.checkpoint = load_as(found.path, {}, kWho);
        return found;
      } catch (const IoError& error) {
        std::error_code ignored;
        removed = removed || !fs::exists(fs::symlink_status(found.path, ignored));
        if (removed) break;
        found.damaged.emplace_back(error.what());
      }
    }
    if (removed) continue;
    std::string text = message(kWho, ": no checkpoint in '", folder_, "' can be loaded");
    for (const std::string& damaged : found.damaged) text += "\n  " + damaged;
    throw IoError(text);
  }
  throw IoError(message(kWho, ": files of '", folder_, "' disappear as fast as they are listed"));
}

}  // namespace baregrad::io

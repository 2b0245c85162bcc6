// Checkpoints: the states of all parts in one safetensors file, and the folder that keeps the last.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include <zlib.h>

#include "baregrad/error.h"
#include "baregrad/io.h"
#include "core/message.h"
#include "io/atomic_file.h"
#include "io/output.h"
#include "io/system_calls.h"
#include "io/text.h"

namespace baregrad::io {

namespace {

namespace fs = std::filesystem;

// Keys of the format's own begin with '/', which no part's name does.
constexpr const char* kFormatKey = "/format";
constexpr const char* kFormat = "baregrad checkpoint 1";
constexpr const char* kPartsKey = "/parts";  // all of them, since one may hold nothing
constexpr const char* kChecksumKey = "/crc32";
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

/// The inverse; nothing for what escaped() never gives.
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

/// Over names, dtypes, shapes, elements and values, in the order of the header.
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

/// The part a name of the file belongs to, and the name inside of it.
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

}  // namespace

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  NamedTensors tensors;
  Metadata metadata;
  std::string parts;
  for (const auto& [part, state] : checkpoint.parts) {
    const std::string prefix = escaped(part) + '/';
    parts += prefix;
    for (const NamedTensor& entry : state.tensors) {
      tensors.push_back({prefix + entry.name, entry.tensor});
    }
    for (const auto& [key, value] : state.values) metadata[prefix + key] = value;
  }
  check_named(tensors, "save_checkpoint");
  metadata[kFormatKey] = kFormat;
  metadata[kPartsKey] = parts;
  metadata[kChecksumKey] = checksum(tensors, metadata);
  save_safetensors(path, tensors, metadata);
}

Checkpoint load_checkpoint(const std::string& path) {
  SafeTensors file = load_safetensors(path);
  const std::string where = message("load_checkpoint: '", path, "'");
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
    if (!part) throw IoError(message(where, ": damaged list of parts"));
    out.parts[*part];
    parts.remove_prefix(std::min(slash + 1, parts.size()));
  }
  for (NamedTensor& entry : file.tensors) {
    auto [state, name] = locate(out, entry.name, where);
    state->tensors.push_back({std::move(name), std::move(entry.tensor)});
  }
  for (auto& [key, value] : metadata) {
    if (key == kFormatKey || key == kPartsKey || key == kChecksumKey) continue;
    auto [state, name] = locate(out, key, where);
    state->values[std::move(name)] = std::move(value);
  }
  return out;
}

CheckpointFolder::CheckpointFolder(std::string folder, int keep)
    : folder_(std::move(folder)), keep_(keep) {
  constexpr const char* kWho = "CheckpointFolder";
  if (keep < 1) throw ValueError(message(kWho, ": keep must be at least 1, is ", keep));
  make_folder(folder_, kWho);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    const std::size_t target = name.find(kSuffix);
    if (target == std::string::npos) continue;
    const std::string whole = name.substr(0, target + kSuffix.size());
    if (step_of(whole) >= 0 && is_temporary_of(name, whole))
      remove_abandoned(entry.path().string());
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
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const std::int64_t step = step_of(entry.path().filename().string());
    // 000000012 and 0000000012 would be the same step; only the former is ours.
    if (step >= 0 && entry.path().string() == path_of(step)) out.push_back(step);
  }
  if (error) {
    throw IoError(message("CheckpointFolder: cannot read '", folder_, "': ", error.message()));
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string CheckpointFolder::save(std::int64_t step, const Checkpoint& checkpoint) {
  std::string path = path_of(step);
  save_checkpoint(path, checkpoint);
  // From here on the new file is safe. One that cannot be removed is no reason to stop a run.
  std::vector<std::int64_t> others = steps();
  std::erase(others, step);
  const auto kept = static_cast<std::size_t>(keep_ - 1);
  for (std::size_t i = 0; i + kept < others.size(); ++i) {
    system_calls.unlink(path_of(others[i]).c_str());
  }
  return path;
}

std::optional<CheckpointFolder::Found> CheckpointFolder::latest() const {
  std::vector<std::int64_t> all = steps();
  if (all.empty()) return {};
  Found found;
  for (; !all.empty(); all.pop_back()) {
    found.step = all.back();
    found.path = path_of(found.step);
    try {
      found.checkpoint = load_checkpoint(found.path);
      return found;
    } catch (const IoError& error) {
      found.damaged.emplace_back(error.what());
    }
  }
  std::string text = message("CheckpointFolder: no checkpoint in '", folder_, "' can be loaded");
  for (const std::string& damaged : found.damaged) text += "\n  " + damaged;
  throw IoError(text);
}

}  // namespace baregrad::io

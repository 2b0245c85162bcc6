// The file behind --json: one object per line, written whole or not at all.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace baregrad::cli {

using Json = nlohmann::ordered_json;

class JsonFile {
 public:
  /// Empty: nothing is written. Throws IoError now when the file could not be written later, so
  /// that nobody waits for a measurement that is then lost.
  explicit JsonFile(std::string path);

  bool wanted() const noexcept { return !path_.empty(); }
  void add(const Json& object);
  /// Writes a temporary file beside the target and renames it. Devices and pipes are written as
  /// they are. Throws IoError.
  void save() const;

 private:
  std::string path_;
  bool replaceable_ = true;  // a plain file, or none yet
  std::string lines_;
};

}  // namespace baregrad::cli

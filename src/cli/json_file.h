// The file behind --json: one object per line, written whole or not at all.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "io/atomic_file.h"

namespace baregrad::cli {

using Json = nlohmann::ordered_json;

class JsonFile {
 public:
  /// An empty path: nothing is written. Throws IoError at once when the file cannot be written,
  /// before the measurements are made.
  explicit JsonFile(const std::string& path);

  bool wanted() const noexcept { return file_.has_value(); }
  void add(const Json& object);
  /// Throws IoError.
  void save();

 private:
  std::optional<io::AtomicFile> file_;
  std::string lines_;
};

}  // namespace baregrad::cli

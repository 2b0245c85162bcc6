// Files that grow: logs, of which every record counts as soon as it is written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "baregrad/error.h"

namespace baregrad::io {

/// The file is not fresh.
class FileExists final : public IoError {
 public:
  using IoError::IoError;
};

class AppendFile {
 public:
  /// `fresh`: the file must not exist yet, else FileExists. Throws IoError that opens with `who`.
  AppendFile(std::string path, std::string who, bool fresh);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// Keeps others who lock out until the object goes. Throws IoError when somebody has the file;
  /// does nothing where the file system has no locks.
  void lock();
  /// One record, whole: where writing fails in the midst of it, what was written is cut off again.
  void append(std::string_view record);
  /// Waits until all is on the disk.
  void flush();
  /// Keeps the first `bytes` bytes.
  void cut(std::uint64_t bytes);
  std::uint64_t size() const noexcept { return size_; }
  const std::string& path() const noexcept { return path_; }

 private:
  [[noreturn]] void fail(int error) const;

  std::string path_;
  std::string who_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace baregrad::io

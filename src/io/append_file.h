// Files that grow: logs, where every record counts as soon as it is written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "baregrad/error.h"

namespace baregrad::io {

/// The file exists already.
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

  /// Takes the file's lock for the lifetime of the object. Throws IoError when another process
  /// holds it; does nothing where the file system has no locks.
  void lock();
  /// Appends one whole record. If writing fails part way, the part is cut off again.
  void append(std::string_view record);
  /// Waits until all is on the disk.
  void flush();
  /// Truncates the file to `bytes` bytes.
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

// A folder for temporary files.
#pragma once

#include <string>
#include <string_view>

namespace baregrad::lab {

class ScratchFolder {
 public:
  /// In $TMPDIR or /tmp, or else in `otherwise`. If none is writable, ok() is false and why() has
  /// the system's message.
  explicit ScratchFolder(const std::string& otherwise);
  /// Removes the folder with its contents.
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  bool ok() const noexcept { return !path_.empty(); }
  const std::string& why() const noexcept { return why_; }
  const std::string& path() const noexcept { return path_; }
  /// Writes a file, and creates its parent folders. Throws IoError.
  void write(std::string_view name, std::string_view text) const;

 private:
  std::string path_;
  std::string why_;
};

/// Removes all scratch folders. For signal handlers before the end of the process: it does not
/// allocate or lock, and waits at most a second for children that still write.
void remove_scratch_folders() noexcept;

}  // namespace baregrad::lab

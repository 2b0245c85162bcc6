// A folder for files that nobody needs afterwards.
#pragma once

#include <string>
#include <string_view>

namespace baregrad::lab {

class ScratchFolder {
 public:
  /// In $TMPDIR or /tmp, or else in `otherwise`. Where none can be written to, ok() is false and
  /// why() says what the system said.
  explicit ScratchFolder(const std::string& otherwise);
  /// Removes it with all that is in it.
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  bool ok() const noexcept { return !path_.empty(); }
  const std::string& why() const noexcept { return why_; }
  const std::string& path() const noexcept { return path_; }
  /// Writes a file, with the folders that lead to it. Throws IoError.
  void write(std::string_view name, std::string_view text) const;

 private:
  std::string path_;
  std::string why_;
};

/// Removes all that are there. For handlers of signals before the end of the process: it allocates
/// nothing, locks nothing, and waits a second at most for children that still write.
void remove_scratch_folders() noexcept;

}  // namespace baregrad::lab

// io/: the only place that opens files for writing, and the one function that does: a file is
// written whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace baregrad::io {

/// Contents go to a temporary file beside the target, which takes the target's place when all is
/// on the disk. Devices and pipes are written as they are. An IoError opens with `who` and
/// names the target.
class AtomicFile {
 public:
  /// Throws now when the target could not be written, so that nobody works for something that is
  /// then lost. Nothing is left behind before open().
  AtomicFile(std::string target, std::string who);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Starts the contents. Whatever is not committed is thrown away.
  void open();
  void write(std::string_view text);
  void commit();

 private:
  [[noreturn]] void fail(int error) const;
  int create_temporary(std::string& name) const;
  void discard() noexcept;

  std::string target_;
  std::string who_;
  bool replaceable_ = true;  // a plain file, or none yet
  std::string temporary_;    // while there is one
  int descriptor_ = -1;
};

/// Makes a folder with its parents; throws IoError.
void make_folder(const std::string& folder, const char* who);
/// Makes a folder that does not exist yet, in one that does. False when the name is taken: of
/// several processes that ask for one name at once, one gets true. Throws IoError.
bool make_new_folder(const std::string& folder, const char* who);
/// Makes names in a folder durable. 0, or an errno.
int sync_folder(const std::string& folder) noexcept;

// ---- Temporaries that a killed process left.
// A writer locks its temporary (flock) as soon as it exists, and keeps the lock until the file has
// its final name. Whoever removes one must hold that lock, and a writer whose temporary was removed
// before it had the lock takes another. So no order of events removes a temporary in use. Without
// flock, on some network file systems, nothing is removed.

/// Whether a file's name is that of a temporary for a target of this name.
bool is_temporary_of(std::string_view name, std::string_view target);
/// Removes a temporary unless somebody, in whatever process, still writes it.
void remove_abandoned(const std::string& temporary) noexcept;

/// A whole file at once.
void write_whole(const std::string& target, std::string_view text, const char* who);

}  // namespace baregrad::io

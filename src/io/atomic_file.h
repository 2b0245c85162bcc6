// io/: the only folder that opens files for writing. AtomicFile does it: a file is written whole or
// not at all.
#pragma once

#include <string>
#include <string_view>

namespace baregrad::io {

/// Contents go to a temporary file beside the target, which is renamed to the target when all is on
/// the disk. Devices and pipes are written directly. An IoError opens with `who` and names the
/// target.
class AtomicFile {
 public:
  /// Throws at once when the target cannot be written, before the caller does the work. Creates
  /// nothing before open().
  AtomicFile(std::string target, std::string who);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Starts the contents. Contents that are not committed are discarded.
  void open();
  void write(std::string_view text);
  void commit();

 private:
  [[noreturn]] void fail(int error) const;
  int create_temporary(std::string& name) const;
  void discard() noexcept;

  std::string target_;
  std::string who_;
  bool replaceable_ = true;  // a regular file, or no file yet
  std::string temporary_;    // empty: there is none
  int descriptor_ = -1;
};

/// Makes a folder with its parents; throws IoError.
void make_folder(const std::string& folder, const char* who);
/// Makes a new folder in an existing one. False when the name is taken: if several processes ask
/// for the same name at once, one gets true. Throws IoError.
bool make_new_folder(const std::string& folder, const char* who);
/// Makes the entries of a folder durable. 0, or an errno.
int sync_folder(const std::string& folder) noexcept;

// ---- Temporary files left by killed processes. A writer locks its temporary file (flock) as soon
// as it exists, and keeps the lock until the file has its final name. A remover must hold that
// lock. A writer whose file was removed before it got the lock creates another. So a file in use is
// never removed, whatever the order of events. Without flock, as on some network file systems,
// nothing is removed.

/// Whether a file name is that of a temporary file for the target's name.
bool is_temporary_of(std::string_view name, std::string_view target);
/// Removes a temporary file unless a process is still writing it.
void remove_abandoned(const std::string& temporary) noexcept;

/// Writes a whole file at once.
void write_whole(const std::string& target, std::string_view text, const char* who);

}  // namespace baregrad::io

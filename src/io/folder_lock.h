// One process at a time writes into a folder.
#pragma once

#include <cstdint>
#include <string>

#include "baregrad/error.h"

namespace baregrad::io {

/// Another process, or another object of this process, has the lock. The message names the process.
class FolderInUse final : public IoError {
 public:
  using IoError::IoError;
};

/// Held for the lifetime of the object. The kernel releases the lock when the process ends in any
/// way, so no stale lock remains. A forked child that does not exec keeps the lock until it ends.
/// The lock (flock) is on the file `lock` in the folder, which names its holder. The file stays
/// after the lock is released, as it could not be removed safely. On a file system without flock,
/// an abstract socket named after the folder's path is used instead; it excludes only other
/// processes of this machine (of this container, if it has its own network).
class FolderLock {
 public:
  /// The folder must exist. Throws FolderInUse, and IoError when the file cannot be made.
  FolderLock(const std::string& folder, std::string who);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Throws FolderInUse when the lock is held. Changes nothing on the disk. Finds no holder where
  /// the file system has no flock.
  static void check_free(const std::string& folder, const std::string& who);

  /// Checks that the folder is still the one that was locked. Throws IoError when it was removed or
  /// replaced. If only the file `lock` was removed, the lock is taken again.
  void check();

 private:
  void lock();
  void lock_socket();
  void sign() const noexcept;
  void close() noexcept;

  std::string folder_;
  std::string who_;
  std::uint64_t device_ = 0;  // device and inode of the folder
  std::uint64_t number_ = 0;
  int file_ = -1;
  int socket_ = -1;
};

}  // namespace baregrad::io

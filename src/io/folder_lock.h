// One process at a time writes into a folder.
#pragma once

#include <cstdint>
#include <string>

#include "baregrad/error.h"

namespace baregrad::io {

/// Another process, or another object of this one, has the lock. The message names the process.
class FolderInUse final : public IoError {
 public:
  using IoError::IoError;
};

/// Held while the object lives. The kernel takes it back when the process ends, however it ends, so
/// that no lock is ever left behind; a child that it forked, and that runs no other program, keeps
/// the lock for its own life. The file `lock` in the folder carries it (flock) and names its
/// holder; it stays when the lock is gone, as removing it could not be made safe. Where the file
/// system has no flock, an abstract socket with the folder's path as its name stands in, which
/// holds off the other processes of this machine (of this container, where it has a network of its
/// own).
class FolderLock {
 public:
  /// The folder exists. Throws FolderInUse, and IoError when the file cannot be made.
  FolderLock(const std::string& folder, std::string who);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Throws FolderInUse when somebody has the lock. Changes nothing on the disk, and sees no holder
  /// where the file system has no flock.
  static void check_free(const std::string& folder, const std::string& who);

  /// Whether the folder is still the one that was locked: throws IoError when it was removed or
  /// another stands in its place. If only the file `lock` was removed, the lock is taken anew.
  void check();

 private:
  void lock();
  void lock_socket();
  void sign() const noexcept;
  void close() noexcept;

  std::string folder_;
  std::string who_;
  std::uint64_t device_ = 0;  // of the folder, with its number there
  std::uint64_t number_ = 0;
  int file_ = -1;
  int socket_ = -1;
};

}  // namespace baregrad::io

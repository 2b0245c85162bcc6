// Temporary file, fsync, rename, fsync of the folder.
#include "io/atomic_file.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "baregrad/error.h"
#include "core/message.h"

namespace baregrad::io {

namespace {

namespace fs = std::filesystem;

/// Like no other of this or another process.
std::string temporary_beside(const std::string& path) {
  static std::atomic<unsigned> count{0};
  return message(path, ".", ::getpid(), ".", count.fetch_add(1), ".tmp");
}

/// A rename would replace a link, not what it points to (which may not exist yet). 0, or an errno.
int follow_links(std::string& target) {
  fs::path path = target;
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(path, error)); ++links) {
    constexpr int kMostLinks = 40;
    if (links == kMostLinks) return ELOOP;
    path = path.parent_path() / fs::read_symlink(path, error);
  }
  target = path.string();
  return 0;
}

}  // namespace

void AtomicFile::fail(int error) const {
  throw IoError(message(who_, ": cannot write '", target_, "': ", std::strerror(error)));
}

int AtomicFile::open_descriptor(const std::string& path, int flags) const {
  const int descriptor = ::open(path.c_str(), flags | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(errno);
  return descriptor;
}

AtomicFile::AtomicFile(std::string target, std::string who)
    : target_(std::move(target)), who_(std::move(who)) {
  if (target_.empty()) fail(ENOENT);
  struct stat about {};
  const bool exists = ::stat(target_.c_str(), &about) == 0;
  if (exists && S_ISDIR(about.st_mode)) fail(EISDIR);
  if (exists && ::access(target_.c_str(), W_OK) != 0) fail(errno);
  replaceable_ = !exists || S_ISREG(about.st_mode);
  if (!replaceable_) return;
  if (const int error = follow_links(target_)) fail(error);
  const std::string probe = temporary_beside(target_);
  ::close(open_descriptor(probe, O_CREAT | O_EXCL));
  ::unlink(probe.c_str());
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

void AtomicFile::open() {
  discard();
  if (!replaceable_) {
    descriptor_ = open_descriptor(target_, 0);
    return;
  }
  std::string temporary = temporary_beside(target_);
  descriptor_ = open_descriptor(temporary, O_CREAT | O_EXCL);
  temporary_ = std::move(temporary);
  struct stat about {};
  if (::stat(target_.c_str(), &about) == 0 && ::fchmod(descriptor_, about.st_mode & 0777) != 0) {
    fail(errno);
  }
}

void AtomicFile::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      fail(errno);
    }
  }
}

void AtomicFile::commit() {
  if (replaceable_ && ::fsync(descriptor_) != 0) fail(errno);
  if (::close(std::exchange(descriptor_, -1)) != 0) fail(errno);
  if (!replaceable_) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
  const fs::path parent = fs::path(target_).parent_path();
  const int folder =
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
}

}  // namespace baregrad::io

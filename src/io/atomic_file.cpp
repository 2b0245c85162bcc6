// Temporary file, fsync, rename, fsync of the folder.
#include "io/atomic_file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "baregrad/error.h"
#include "core/message.h"
#include "io/system_calls.h"

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
  const int descriptor = system_calls.open(path.c_str(), flags | O_WRONLY | O_CLOEXEC, 0666);
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
  system_calls.close(open_descriptor(probe, O_CREAT | O_EXCL));
  system_calls.unlink(probe.c_str());
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (descriptor_ >= 0) system_calls.close(std::exchange(descriptor_, -1));
  if (!temporary_.empty()) system_calls.unlink(temporary_.c_str());
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
  // Held for as long as somebody writes; see remove_abandoned.
  ::flock(descriptor_, LOCK_EX | LOCK_NB);
  struct stat about {};
  if (::stat(target_.c_str(), &about) == 0 && ::fchmod(descriptor_, about.st_mode & 0777) != 0) {
    fail(errno);
  }
}

void AtomicFile::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = system_calls.write(descriptor_, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (written == 0 || errno != EINTR) {
      fail(written == 0 ? EIO : errno);
    }
  }
}

void AtomicFile::commit() {
  if (replaceable_ && system_calls.fsync(descriptor_) != 0) fail(errno);
  if (system_calls.close(std::exchange(descriptor_, -1)) != 0) fail(errno);
  if (!replaceable_) return;
  if (system_calls.rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
  const fs::path parent = fs::path(target_).parent_path();
  if (const int error = sync_folder(parent.empty() ? "." : parent.string())) fail(error);
}

void make_folder(const std::string& folder, const char* who) {
  const auto fail = [&](const std::string& what) {
    throw IoError(message(who, ": cannot make the folder '", folder, "': ", what));
  };
  std::error_code error;
  std::vector<fs::path> grown;  // folders that get a new entry
  for (fs::path path = fs::absolute(folder, error).lexically_normal();
       path.has_relative_path() && !fs::exists(path, error); path = path.parent_path()) {
    grown.push_back(path.parent_path());
  }
  fs::create_directories(folder, error);
  if (error) fail(error.message());
  if (!fs::is_directory(folder, error)) fail(std::strerror(ENOTDIR));
  for (const fs::path& path : grown) {
    if (const int failed = sync_folder(path.string())) fail(std::strerror(failed));
  }
}

int sync_folder(const std::string& folder) noexcept {
  const int descriptor = system_calls.open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  // A folder one may write into and not read, and file systems without such a call: all is done
  // that can be.
  if (descriptor < 0) return errno == EACCES ? 0 : errno;
  const int error = system_calls.fsync(descriptor) != 0 && errno != EINVAL ? errno : 0;
  system_calls.close(descriptor);
  return error;
}

bool is_temporary_of(std::string_view name, std::string_view target) {
  if (!name.starts_with(target) || !name.ends_with(".tmp")) return false;
  name.remove_prefix(target.size());
  // ".PID.COUNT.tmp"
  return std::count(name.begin(), name.end(), '.') == 3 && name.front() == '.' &&
         name.find_first_not_of(".0123456789") == name.size() - 3;
}

void remove_abandoned(const std::string& temporary) noexcept {
  const int descriptor = ::open(temporary.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return;
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) system_calls.unlink(temporary.c_str());
  ::close(descriptor);
}

void write_whole(const std::string& target, std::string_view text, const char* who) {
  AtomicFile file(target, who);
  file.open();
  file.write(text);
  file.commit();
}

}  // namespace baregrad::io

// Temporary file, fsync, rename, fsync of the folder.
#include "io/atomic_file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "baregrad/error.h"
#include "core/message.h"
#include "io/system_calls.h"
#include "io/text.h"

namespace baregrad::io {

namespace {

namespace fs = std::filesystem;

/// Process numbers repeat: in containers at every start.
std::uint64_t unlikely_number() {
  static std::atomic<std::uint64_t> count{0};
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) == sizeof number) return number;
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return static_cast<std::uint64_t>(now) + count.fetch_add(1);
}

/// A long name of the target is cut, so that the suffix fits.
std::string temporary_beside(const std::string& path) {
  constexpr std::size_t kMostName = 200;
  const fs::path target = path;
  const std::string name = target.filename().string().substr(0, kMostName);
  return (target.parent_path() / message(name, ".", ::getpid(), ".", unlikely_number(), ".tmp"))
      .string();
}

int lock_now(int descriptor) {
  while (system_calls.flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

/// Locks a temporary file that was just created. False when remove_abandoned() got the lock first:
/// the file is removed, or about to be.
bool lock_new(int descriptor) {
  const int error = lock_now(descriptor);
  // No locks here: remove_abandoned() removes nothing either.
  if (error != 0) return error != EWOULDBLOCK;
  struct stat about {};
  return ::fstat(descriptor, &about) == 0 && about.st_nlink > 0;
}

/// A rename would replace a link instead of the file it points to (which may not exist yet). 0, or
/// an errno.
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

int AtomicFile::create_temporary(std::string& name) const {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    name = temporary_beside(target_);
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    const int descriptor = system_calls.open(name.c_str(), flags, 0666);
    if (descriptor < 0 && errno == EEXIST) continue;
    if (descriptor < 0) fail(errno);
    if (lock_new(descriptor)) return descriptor;
    system_calls.close(descriptor);
    system_calls.unlink(name.c_str());
  }
  fail(EEXIST);
}

AtomicFile::AtomicFile(std::string target, std::string who)
    : target_(std::move(target)), who_(std::move(who)) {
  check_path(target_, who_);
  if (target_.empty()) fail(ENOENT);
  struct stat about {};
  const bool exists = ::stat(target_.c_str(), &about) == 0;
  // For example, the name is too long: the temporary name is shorter, and could be written.
  if (!exists && errno != ENOENT) fail(errno);
  if (exists && S_ISDIR(about.st_mode)) fail(EISDIR);
  if (exists && ::access(target_.c_str(), W_OK) != 0) fail(errno);
  replaceable_ = !exists || S_ISREG(about.st_mode);
  if (!replaceable_) return;
  if (const int error = follow_links(target_)) fail(error);
  std::string probe;
  system_calls.close(create_temporary(probe));
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
    descriptor_ = system_calls.open(target_.c_str(), O_WRONLY | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail(errno);
    return;
  }
  std::string temporary;
  descriptor_ = create_temporary(temporary);
  temporary_ = std::move(temporary);
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
  if (!replaceable_) {
    if (system_calls.close(std::exchange(descriptor_, -1)) != 0) fail(errno);
    return;
  }
  if (system_calls.fsync(descriptor_) != 0) fail(errno);
  if (system_calls.rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
  // The lock ends with the descriptor, so it is closed only after the rename. All data is on the
  // disk: an error of close() does not matter.
  system_calls.close(std::exchange(descriptor_, -1));
  const fs::path parent = fs::path(target_).parent_path();
  if (const int error = sync_folder(parent.empty() ? "." : parent.string())) fail(error);
}

void make_folder(const std::string& folder, const char* who) {
  check_path(folder, who);
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

bool make_new_folder(const std::string& folder, const char* who) {
  check_path(folder, who);
  const auto fail = [&](int error) {
    throw IoError(message(who, ": cannot make the folder '", folder, "': ", std::strerror(error)));
  };
  if (::mkdir(folder.c_str(), 0777) != 0) {
    if (errno != EEXIST) fail(errno);
    return false;
  }
  const fs::path parent = fs::path(folder).parent_path();
  if (const int error = sync_folder(parent.empty() ? "." : parent.string())) fail(error);
  return true;
}

int sync_folder(const std::string& folder) noexcept {
  const int descriptor = system_calls.open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  // A folder that may be written but not read, or a file system without this call: nothing more can
  // be done.
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
  const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const int descriptor = ::open(temporary.c_str(), flags);
  if (descriptor < 0) return;
  struct stat about {};
  const bool plain = ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
  if (plain && lock_now(descriptor) == 0) system_calls.unlink(temporary.c_str());
  ::close(descriptor);
}

void write_whole(const std::string& target, std::string_view text, const char* who) {
  AtomicFile file(target, who);
  file.open();
  file.write(text);
  file.commit();
}

}  // namespace baregrad::io

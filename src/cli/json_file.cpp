// Atomic writing of the --json file.
#include "cli/json_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "baregrad/error.h"

namespace baregrad::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, int error) {
  throw IoError(fmt::format("--json: cannot write '{}': {}", path, std::strerror(error)));
}

class File {
 public:
  /// `target` is the file a user knows of; errors name it.
  File(const std::string& path, int flags, const std::string& target) : target_(target) {
    fd_ = ::open(path.c_str(), flags | O_WRONLY | O_CLOEXEC, 0666);
    if (fd_ < 0) fail(target_, errno);
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = ::write(fd_, text.data(), text.size());
      if (written >= 0) {
        text.remove_prefix(static_cast<std::size_t>(written));
      } else if (errno != EINTR) {
        fail(target_, errno);
      }
    }
  }
  void set_mode(mode_t mode) const {
    if (::fchmod(fd_, mode) != 0) fail(target_, errno);
  }
  void sync() const {
    if (::fsync(fd_) != 0) fail(target_, errno);
  }
  void close() {
    if (::close(std::exchange(fd_, -1)) != 0) fail(target_, errno);
  }

 private:
  const std::string& target_;
  int fd_;
};

std::string temporary_beside(const std::string& path) {
  return fmt::format("{}.{}.tmp", path, ::getpid());
}

/// A rename would replace a link, not what it points to (which may not exist yet).
std::string behind_links(fs::path path) {
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(path, error)); ++links) {
    constexpr int kMostLinks = 40;
    if (links == kMostLinks) fail(path.string(), ELOOP);
    path = path.parent_path() / fs::read_symlink(path, error);
  }
  return path.string();
}

/// Removes a temporary file unless it was renamed.
struct Removal {
  const std::string& path;
  bool armed = true;
  ~Removal() {
    if (armed) ::unlink(path.c_str());
  }
};

}  // namespace

JsonFile::JsonFile(std::string path) : path_(std::move(path)) {
  if (!wanted()) return;
  struct stat about {};
  const bool exists = ::stat(path_.c_str(), &about) == 0;
  if (exists && S_ISDIR(about.st_mode)) fail(path_, EISDIR);
  if (exists && ::access(path_.c_str(), W_OK) != 0) fail(path_, errno);
  replaceable_ = !exists || S_ISREG(about.st_mode);
  if (!replaceable_) return;
  path_ = behind_links(path_);
  const std::string probe = temporary_beside(path_);
  File(probe, O_CREAT | O_EXCL, path_).close();
  ::unlink(probe.c_str());
}

void JsonFile::add(const Json& object) {
  if (wanted()) lines_ += object.dump() + "\n";
}

void JsonFile::save() const {
  if (!wanted()) return;
  if (!replaceable_) {
    File(path_, 0, path_).write(lines_);
    return;
  }
  const std::string temporary = temporary_beside(path_);
  File file(temporary, O_CREAT | O_EXCL, path_);
  Removal removal{temporary};
  struct stat about {};
  if (::stat(path_.c_str(), &about) == 0) file.set_mode(about.st_mode & 0777);
  file.write(lines_);
  file.sync();
  file.close();
  if (::rename(temporary.c_str(), path_.c_str()) != 0) fail(path_, errno);
  removal.armed = false;
  const fs::path parent = fs::path(path_).parent_path();
  const int folder =
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
}

}  // namespace baregrad::cli

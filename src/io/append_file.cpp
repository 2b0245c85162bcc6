// Appending whole records.
#include "io/append_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "core/message.h"
#include "io/system_calls.h"
#include "io/text.h"

namespace baregrad::io {

AppendFile::AppendFile(std::string path, std::string who, bool fresh)
    : path_(std::move(path)), who_(std::move(who)) {
  check_path(path_, who_);
  // O_NONBLOCK: do not wait for the reader of a pipe, which is refused anyway.
  const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | (fresh ? O_EXCL : 0);
  descriptor_ = system_calls.open(path_.c_str(), flags, 0666);
  if (descriptor_ < 0 && fresh && errno == EEXIST) {
    throw FileExists(message(who_, ": '", path_, "' exists already"));
  }
  if (descriptor_ < 0) fail(errno);
  struct stat about {};
  ::fstat(descriptor_, &about);
  if (!S_ISREG(about.st_mode)) {
    system_calls.close(descriptor_);
    fail(EINVAL);
  }
  size_ = static_cast<std::uint64_t>(about.st_size);
}

AppendFile::~AppendFile() { system_calls.close(descriptor_); }

void AppendFile::fail(int error) const {
  throw IoError(message(who_, ": cannot write '", path_, "': ", std::strerror(error)));
}

void AppendFile::lock() {
  while (system_calls.flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      throw IoError(message(who_, ": '", path_, "' is being written by another process"));
    }
    if (errno != EINTR) return;
  }
}

void AppendFile::append(std::string_view record) {
  const std::uint64_t end = size_ + record.size();
  while (!record.empty()) {
    const ssize_t written = system_calls.write(descriptor_, record.data(), record.size());
    if (written > 0) {
      record.remove_prefix(static_cast<std::size_t>(written));
    } else if (written == 0 || errno != EINTR) {
      const int error = written == 0 ? EIO : errno;
      system_calls.ftruncate(descriptor_, static_cast<off_t>(size_));
      fail(error);
    }
  }
  size_ = end;
}

void AppendFile::flush() {
  if (system_calls.fsync(descriptor_) != 0) fail(errno);
}

void AppendFile::cut(std::uint64_t bytes) {
  if (system_calls.ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) fail(errno);
  size_ = bytes;
}

}  // namespace baregrad::io

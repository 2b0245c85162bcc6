// A file lock (flock). The file names the process that holds it.
#include "io/folder_lock.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/message.h"
#include "io/system_calls.h"
#include "io/text.h"

namespace baregrad::io {

namespace {

std::string lock_file(const std::string& folder) { return folder + "/lock"; }

std::string host_name() {
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0) return {};
  return host;
}

/// The signature in the file: "process 12 on host". Empty before it is signed.
struct Holder {
  std::int64_t process = 0;
  std::string host;
};
std::optional<Holder> holder_of(const std::string& file) {
  constexpr std::string_view kProcess = "process ";
  constexpr std::string_view kOn = " on ";
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return {};
  char buffer[512];
  const ssize_t got = ::pread(descriptor, buffer, sizeof buffer, 0);
  ::close(descriptor);
  std::string_view text(buffer, got > 0 ? static_cast<std::size_t>(got) : 0);
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(kProcess)) return {};
  text = text.substr(kProcess.size(), end - kProcess.size());
  Holder holder;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9' && holder.process < 1'000'000'000'000) {
    holder.process = holder.process * 10 + (text[0] - '0');
    text.remove_prefix(1);
  }
  if (!text.starts_with(kOn)) return {};
  holder.host = text.substr(kOn.size());
  return holder;
}

/// The holder signs after it has the lock. For an instant the file is empty, or names the previous
/// holder, which has ended.
std::string describe_holder(const std::string& file) {
  std::optional<Holder> holder;
  for (int i = 0; i < 50; ++i) {
    holder = holder_of(file);
    const bool ended = holder && holder->host == host_name() &&
                       ::kill(static_cast<pid_t>(holder->process), 0) != 0 && errno == ESRCH;
    if (holder && !ended) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (!holder) return "another process";
  return message("process ", holder->process, " on ", quoted_name(holder->host));
}

[[noreturn]] void fail_in_use(const std::string& folder, const std::string& who) {
  throw FolderInUse(message(who, ": the folder '", folder, "' is in use by ",
                            describe_holder(lock_file(folder)),
                            "; stop it first, or take another folder"));
}

/// FNV-1a. Paths can be longer than socket names.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace

FolderLock::FolderLock(const std::string& folder, std::string who)
    : folder_(folder), who_(std::move(who)) {
  check_path(folder_, who_);
  const std::string path = lock_file(folder_);
  const auto fail = [&](int error) {
    throw IoError(message(who_, ": cannot write '", path, "': ", std::strerror(error)));
  };
  const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK;
  file_ = system_calls.open(path.c_str(), flags, 0666);
  if (file_ < 0) fail(errno);
  struct stat about {};
  struct stat place {};
  if (::fstat(file_, &about) != 0 || !S_ISREG(about.st_mode) ||
      ::stat(folder_.c_str(), &place) != 0) {
    close();
    fail(EINVAL);
  }
  device_ = place.st_dev;
  number_ = place.st_ino;
  try {
    lock();
  } catch (...) {
    close();
    throw;
  }
  sign();
}

FolderLock::~FolderLock() { close(); }

FolderLock::FolderLock(FolderLock&& other) noexcept
    : folder_(std::move(other.folder_)),
      who_(std::move(other.who_)),
      device_(other.device_),
      number_(other.number_),
      file_(std::exchange(other.file_, -1)),
      socket_(std::exchange(other.socket_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  if (this == &other) return *this;
  close();
  folder_ = std::move(other.folder_);
  who_ = std::move(other.who_);
  device_ = other.device_;
  number_ = other.number_;
  file_ = std::exchange(other.file_, -1);
  socket_ = std::exchange(other.socket_, -1);
  return *this;
}

void FolderLock::close() noexcept {
  for (int* descriptor : {&file_, &socket_}) {
    if (*descriptor >= 0) system_calls.close(std::exchange(*descriptor, -1));
  }
}

void FolderLock::check_free(const std::string& folder, const std::string& who) {
  const int file = ::open(lock_file(folder).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return;
  const bool busy = system_calls.flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(file);
  if (busy) fail_in_use(folder, who);
}

void FolderLock::lock() {
  constexpr int kTries = 10;  // check_free() of another process holds the lock for an instant
  for (int i = 0; system_calls.flock(file_, LOCK_EX | LOCK_NB) != 0; ++i) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      lock_socket();
      return;
    }
    if (i >= kTries) fail_in_use(folder_, who_);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void FolderLock::lock_socket() {
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0) return;  // no other way to lock
  std::error_code error;
  const std::string path = std::filesystem::canonical(folder_, error).string();
  const std::string name = message("baregrad-folder-", hash_of(path));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A leading NUL: an abstract socket, not a file.
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(socket_, reinterpret_cast<const sockaddr*>(&address), length) != 0 &&
      errno == EADDRINUSE) {
    fail_in_use(folder_, who_);
  }
}

void FolderLock::sign() const noexcept {
  // The signature only serves error messages: a full disk does not stop the run.
  try {
    const std::string text = message("process ", ::getpid(), " on ", host_name(), "\n");
    if (system_calls.ftruncate(file_, 0) != 0) return;
    static_cast<void>(system_calls.write(file_, text.data(), text.size()));
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for a few bytes
  }
}

void FolderLock::check() {
  struct stat held {};
  struct stat there {};
  struct stat folder {};
  const bool known = ::fstat(file_, &held) == 0;
  const bool found = ::stat(lock_file(folder_).c_str(), &there) == 0;
  if (known && found && held.st_dev == there.st_dev && held.st_ino == there.st_ino) return;
  if (::stat(folder_.c_str(), &folder) != 0 || folder.st_dev != device_ ||
      folder.st_ino != number_) {
    throw IoError(
        message(who_, ": the folder '", folder_, "' was removed, or another stands in its place"));
  }
  close();
  const std::string where = folder_;
  *this = FolderLock(where, who_);
}

}  // namespace baregrad::io

// posix_spawn and pipes.
#include "lab/child.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "baregrad/error.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace baregrad::lab {
namespace {

constexpr int kNoSuchProgram = 127;

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw IoError(std::string("lab: no pipe: ") + std::strerror(errno));
    }
  }
};

/// The environment with additions, in the form that execve takes.
class Environment {
 public:
  explicit Environment(const std::vector<std::pair<std::string, std::string>>& additions) {
    for (const auto& [name, value] : additions) {
      texts_.push_back(name);
      texts_.back() += '=';
      texts_.back() += value;
    }
    for (char** at = environ; *at != nullptr; ++at) {
      if (!is_added(*at, additions)) pointers_.push_back(*at);
    }
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  char** data() { return pointers_.data(); }

 private:
  static bool is_added(const std::string& entry,
                       const std::vector<std::pair<std::string, std::string>>& additions) {
    for (const auto& [name, value] : additions) {
      if (entry.starts_with(name + "=")) return true;
    }
    return false;
  }
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

/// Children that have not been waited for; 0: a free entry. There are more entries than children
/// started at once.
std::array<std::atomic<pid_t>, 64> running{};

void remember(pid_t process) noexcept {
  for (std::atomic<pid_t>& place : running) {
    pid_t free = 0;
    if (place.compare_exchange_strong(free, process)) return;
  }
}

void forget(pid_t process) noexcept {
  for (std::atomic<pid_t>& place : running) {
    pid_t expected = process;
    if (place.compare_exchange_strong(expected, 0)) return;
  }
}

/// Blocks signals that end the process between the start of a child and the note of its number.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t held;
    ::sigemptyset(&held);
    for (const int signal : {SIGINT, SIGTERM}) ::sigaddset(&held, signal);
    ::pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  const sigset_t& before() const noexcept { return before_; }

 private:
  sigset_t before_{};
};

/// A new process group, and the signal mask from before SignalsHeld.
class Attributes {
 public:
  explicit Attributes(const sigset_t& signals) {
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setsigmask(&attributes_, &signals);
  }
  ~Attributes() { ::posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const posix_spawnattr_t* get() const noexcept { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

/// Returns the process number, or -1 with errno set. Without `in` there is no input; without
/// `error` the child shares standard error.
int spawn(const std::vector<std::string>& arguments,
          const std::vector<std::pair<std::string, std::string>>& environment, int in, int out,
          int error) {
  std::vector<std::string> copies = arguments;
  std::vector<char*> pointers;
  for (std::string& copy : copies) pointers.push_back(copy.data());
  pointers.push_back(nullptr);
  Environment variables(environment);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (in >= 0) {
    ::posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  } else {
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  if (error >= 0) ::posix_spawn_file_actions_adddup2(&actions, error, STDERR_FILENO);
  pid_t process = -1;
  int status = 0;
  {
    const SignalsHeld held;
    const Attributes attributes(held.before());
    status = ::posix_spawnp(&process, pointers[0], &actions, attributes.get(), pointers.data(),
                            variables.data());
    if (status == 0) remember(process);
  }
  ::posix_spawn_file_actions_destroy(&actions);
  if (status == 0) return process;
  errno = status;
  return -1;
}

}  // namespace

std::string Outcome::last_line() const {
  const std::string lines = output.substr(0, output.find_last_not_of('\n') + 1);
  return lines.substr(lines.rfind('\n') + 1);
}

int wait_for(int process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  forget(process);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Outcome run_child(const std::vector<std::string>& arguments,
                  const std::vector<std::pair<std::string, std::string>>& environment) {
  Pipe pipe;
  const int process = spawn(arguments, environment, -1, pipe.ends[1], pipe.ends[1]);
  const int error = errno;
  ::close(pipe.ends[1]);
  Outcome outcome;
  if (process < 0) {
    ::close(pipe.ends[0]);
    return {kNoSuchProgram, arguments[0] + ": " + std::strerror(error)};
  }
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t got = ::read(pipe.ends[0], buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    outcome.output.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(pipe.ends[0]);
  outcome.status = wait_for(process);
  return outcome;
}

Piped start_child(const std::vector<std::string>& arguments,
                  const std::vector<std::pair<std::string, std::string>>& environment) {
  Pipe in;
  Pipe out;
  const int process = spawn(arguments, environment, in.ends[0], out.ends[1], -1);
  const int error = errno;
  ::close(in.ends[0]);
  ::close(out.ends[1]);
  if (process < 0) {
    ::close(in.ends[1]);
    ::close(out.ends[0]);
    throw IoError("lab: cannot run '" + arguments[0] + "': " + std::strerror(error));
  }
  return {process, in.ends[1], out.ends[0]};
}

void end_children() noexcept {
  for (const std::atomic<pid_t>& place : running) {
    const pid_t process = place.load();
    if (process > 0) ::kill(-process, SIGTERM);
  }
}

std::string own_path() {
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) throw IoError("lab: the system does not say where this program is");
  return {path.data(), static_cast<std::size_t>(length)};
}

}  // namespace baregrad::lab

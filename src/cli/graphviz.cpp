// Runs `dot` as a child process: it reads the graph from a temporary file and writes the picture to
// a pipe.
#include "cli/graphviz.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "baregrad/error.h"

extern char** environ;

namespace baregrad::cli {
namespace {

/// Closed at the end of the scope.
struct Descriptor {
  int fd = -1;
  ~Descriptor() { reset(); }
  void reset() noexcept {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
};

[[noreturn]] void fail(const char* what, int error) {
  throw IoError(fmt::format("graph: {}: {}", what, std::strerror(error)));
}

/// dot usually takes a second or two; a finished run does not wait forever.
constexpr std::chrono::seconds kMostSeconds{30};

/// False if the time is over before the other end is closed.
bool read_until_end(int descriptor, std::string& text) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + kMostSeconds;
  std::array<char, 65536> buffer;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd ready{descriptor, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;  // a signal, or the end
    const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
    if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) return true;
  }
}

}  // namespace

bool has_graphviz() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/dot").c_str(), X_OK) == 0) return true;
  }
  return false;
}

std::string svg_of_dot(const std::string& dot) {
  if (!has_graphviz()) {
    throw IoError("graph: there is no `dot` on the PATH (Debian's package graphviz has it)");
  }
  std::FILE* input = std::tmpfile();
  if (input == nullptr) fail("no temporary file", errno);
  Descriptor in{::dup(::fileno(input))};
  const bool written = std::fwrite(dot.data(), 1, dot.size(), input) == dot.size();
  const bool flushed = std::fclose(input) == 0;
  if (in.fd < 0 || !written || !flushed) fail("cannot write a temporary file", errno);
  if (::lseek(in.fd, 0, SEEK_SET) != 0) fail("cannot read the temporary file", errno);

  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("no pipe", errno);
  Descriptor out{ends[0]};
  Descriptor child_out{ends[1]};

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.fd, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, child_out.fd, STDOUT_FILENO);
  char program[] = "dot";
  char format[] = "-Tsvg";
  char* const arguments[] = {program, format, nullptr};
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, program, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail("cannot run dot", error);
  child_out.reset();

  std::string svg;
  const bool in_time = read_until_end(out.fd, svg);
  if (!in_time) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) {
    throw IoError(fmt::format("graph: dot took more than {} s", kMostSeconds.count()));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || svg.empty()) {
    throw IoError("graph: dot failed");
  }
  return svg;
}

}  // namespace baregrad::cli

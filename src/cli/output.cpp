// Printing to a terminal or into a pipe.
#include "cli/output.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include <unistd.h>

#include <fmt/format.h>

#include "baregrad/error.h"

namespace baregrad::cli {

void Output::print(std::string_view text) {
  while (!text.empty() && !closed_) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      closed_ = true;
    } else if (errno != EINTR) {
      throw IoError(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
    }
  }
}

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

void Progress::show(const std::string& text) {
  if (!terminal_) return;
  fmt::print(stderr, "\r\033[K{}", text);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() noexcept {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

std::string time_text(double ns) {
  constexpr const char* kUnits[] = {"ns", "µs", "ms", "s"};
  int unit = 0;
  while (unit < 3 && ns >= 999.5) {
    ns /= 1000;
    ++unit;
  }
  const int digits = ns < 9.995 ? 2 : ns < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", ns, digits, kUnits[unit]);
}

std::string bytes_text(std::size_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  while (unit < 4 && value >= 1024) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value == std::floor(value) ? 0 : 1, kUnits[unit]);
}

}  // namespace baregrad::cli

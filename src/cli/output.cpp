// Printing to a terminal or into a pipe.
#include "cli/output.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "baregrad/error.h"
#include "core/printable.h"
#include "core/utf8.h"

namespace baregrad::cli {
namespace {

/// Writes all of the text. 0, or an errno.
int write_all(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

constexpr std::string_view kClearLine = "\r\033[K";

/// The first `columns` characters.
std::string_view cut(std::string_view text, std::size_t columns) noexcept {
  std::size_t end = 0;
  while (end < text.size() && columns > 0) {
    end += std::max<std::size_t>(1, utf8_length(text.substr(end)));
    --columns;
  }
  return text.substr(0, end);
}

}  // namespace

bool open_standard_streams() noexcept {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // open() takes the lowest free number, and all numbers below are in use.
    const int opened = ::open("/dev/null", stream == STDIN_FILENO ? O_RDONLY : O_WRONLY);
    if (opened != stream) return false;
  }
  return true;
}

void Output::print(std::string_view text) {
  if (closed_) return;
  const int error = write_all(STDOUT_FILENO, printable(text, LineEnds::Kept));
  if (error == 0) return;
  closed_ = true;
  if (error != EPIPE) error_ = error;
}

void Output::finish() const {
  if (error_ == 0) return;
  throw IoError(fmt::format("cannot write to standard output: {}", std::strerror(error_)));
}

void say(std::string_view text) noexcept {
  try {
    write_all(STDERR_FILENO, printable(text, LineEnds::Kept) + "\n");
  } catch (const std::bad_alloc&) {
    write_all(STDERR_FILENO, "out of memory\n");
  }
}

void complain(std::string_view text) noexcept {
  try {
    say("baregrad: " + std::string(text));
  } catch (const std::bad_alloc&) {
    say("baregrad: out of memory");
  }
}

std::string shell_word(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./,:=@%+").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  const bool needs_escapes = printable(text) != text;
  std::string word = needs_escapes ? "$'" : "'";
  for (const char c : text) {
    if (c == '\'') {
      word += needs_escapes ? "\\'" : "'\\''";
    } else if (needs_escapes && c == '\\') {
      word += "\\\\";
    } else {
      word += c;
    }
  }
  return printable(word) + "'";
}

bool has_capable_terminal() noexcept {
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || *term == '\0' || std::string_view(term) == "dumb";
  return !dumb && ::isatty(STDERR_FILENO) == 1;
}

Progress::Progress() : terminal_(has_capable_terminal()) {}

std::size_t Progress::room() const noexcept {
  constexpr std::size_t kUsual = 80;
  if (!terminal_) return 0;
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  // The last column stays free: some terminals wrap when it is written.
  return (known ? size.ws_col : kUsual) - 1;
}

void Progress::show(std::string_view text) {
  if (!terminal_) return;
  std::string line(kClearLine);
  line += cut(printable(text), room());
  write_all(STDERR_FILENO, line);
  shown_ = true;
}

void Progress::clear() noexcept {
  if (!shown_) return;
  write_all(STDERR_FILENO, kClearLine);
  shown_ = false;
}

void Table::add(std::string_view title, bool left, std::vector<std::string> cells) {
  if (std::all_of(cells.begin(), cells.end(), [](const auto& c) { return c.empty(); })) return;
  cells.emplace(cells.begin(), title);
  for (std::string& cell : cells) cell = printable(cell);
  lines_.resize(std::max(lines_.size(), cells.size()));
  std::size_t width = 0;
  for (const std::string& cell : cells) width = std::max(width, utf8_columns(cell));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    lines_[i] +=
        left ? fmt::format("{:<{}}  ", cells[i], width) : fmt::format("{:>{}}  ", cells[i], width);
  }
}

std::string Table::text() const {
  std::string text;
  for (const std::string& line : lines_) {
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string table_text(std::span<const Heading> headings,
                       std::span<const std::vector<std::string>> lines) {
  Table table;
  for (std::size_t column = 0; column < headings.size(); ++column) {
    std::vector<std::string> cells;
    cells.reserve(lines.size() + 1);
    for (const std::vector<std::string>& line : lines) cells.push_back(line[column]);
    table.add(headings[column].title, headings[column].left, std::move(cells));
  }
  return table.text();
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

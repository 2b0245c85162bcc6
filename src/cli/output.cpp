// Printing to a terminal or into a pipe.
#include "cli/output.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include <unistd.h>

#include <fmt/format.h>

#include "baregrad/error.h"

namespace baregrad::cli {
namespace {

/// Not bytes: there is a µ among them.
std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

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

void Table::add(std::string_view title, bool left, std::vector<std::string> cells) {
  if (std::all_of(cells.begin(), cells.end(), [](const auto& c) { return c.empty(); })) return;
  cells.emplace(cells.begin(), title);
  lines_.resize(std::max(lines_.size(), cells.size()));
  std::size_t width = 0;
  for (const std::string& cell : cells) width = std::max(width, characters(cell));
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

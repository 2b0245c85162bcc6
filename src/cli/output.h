// cli/: parsing and printing, no logic. Here: what goes to the terminal.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baregrad::cli {

/// Opens closed standard streams (input, output, error) on /dev/null. Otherwise the next opened
/// file would get their number, and printed text would land in it. False when that fails.
bool open_standard_streams() noexcept;

/// Writes to standard output; control characters in names and paths are escaped (core/printable.h).
/// A closed reader (`| head`) is not an error: the rest is dropped. After any other failure the
/// rest is dropped too, so that a full disk does not end a long run; finish() reports the failure.
class Output {
 public:
  void print(std::string_view text);
  /// The reader has closed the pipe.
  bool closed() const noexcept { return closed_; }
  /// Throws IoError when a write failed.
  void finish() const;

 private:
  bool closed_ = false;
  int error_ = 0;
};

/// Prints a line on standard error, escaped as by Output. Never fails. complain() prefixes
/// "baregrad: ".
void say(std::string_view text) noexcept;
void complain(std::string_view text) noexcept;
/// `text` as a word of a command line that can be copied into a shell.
std::string shell_word(std::string_view text);

/// Whether standard error is a terminal that understands control sequences.
bool has_capable_terminal() noexcept;

/// A line on standard error that overwrites itself. It is shown only on a terminal (not TERM=dumb)
/// and never wraps.
class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(std::string_view text);
  void clear() noexcept;
  /// The number of columns available; 0: nothing is shown.
  std::size_t room() const noexcept;

 private:
  bool terminal_;
  bool shown_ = false;
};

/// Each column is as wide as its widest cell. Columns without any text are left out.
class Table {
 public:
  void add(std::string_view title, bool left, std::vector<std::string> cells);
  std::string text() const;

 private:
  std::vector<std::string> lines_;
};

struct Heading {
  std::string_view title;
  bool left;
};

/// The same from lines, each with one cell per heading.
std::string table_text(std::span<const Heading> headings,
                       std::span<const std::vector<std::string>> lines);

/// "1.23 µs": three digits and a unit.
std::string time_text(double ns);
/// "512 KiB"
std::string bytes_text(std::size_t bytes);

}  // namespace baregrad::cli

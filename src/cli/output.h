// cli/: parsing and printing, no logic. Here: what goes to the terminal.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baregrad::cli {

/// Standard input, output and error that are closed are opened on /dev/null. Otherwise the next
/// file that is opened gets their number, and what is printed lands in it. False when that fails.
bool open_standard_streams() noexcept;

/// Writes to standard output, control characters of names and paths escaped (core/printable.h). A
/// reader that went away (`| head`) is no error: what follows is dropped. After any other failure
/// what follows is dropped too, so that a long run is not lost for a full disk; finish() reports
/// it.
class Output {
 public:
  void print(std::string_view text);
  /// Nobody reads any more.
  bool closed() const noexcept { return closed_; }
  /// Throws IoError when something could not be written.
  void finish() const;

 private:
  bool closed_ = false;
  int error_ = 0;
};

/// A line on standard error, escaped as by Output. Never fails. complain() puts "baregrad: " before
/// it.
void say(std::string_view text) noexcept;
void complain(std::string_view text) noexcept;
/// `text` as a word of a command line that can be copied into a shell.
std::string shell_word(std::string_view text);

/// Whether standard error is a terminal that understands control sequences.
bool has_capable_terminal() noexcept;

/// A line on standard error that overwrites itself, shown only on a terminal (not TERM=dumb), and
/// never longer than one.
class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(std::string_view text);
  void clear() noexcept;
  /// Columns that a line may take; 0: nothing is shown.
  std::size_t room() const noexcept;

 private:
  bool terminal_;
  bool shown_ = false;
};

/// Columns as wide as their widest cell. One that is empty throughout is left out.
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

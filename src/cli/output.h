// cli/: parsing and printing, no logic. Here: what goes to the terminal.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baregrad::cli {

/// Writes to standard output. A reader that went away (`| head`) is no error: what follows is
/// dropped. Any other failure throws IoError.
class Output {
 public:
  void print(std::string_view text);
  /// Nobody reads any more.
  bool closed() const noexcept { return closed_; }

 private:
  bool closed_ = false;
};

/// A line on standard error that overwrites itself, shown only on a terminal.
class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(const std::string& text);
  void clear() noexcept;

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

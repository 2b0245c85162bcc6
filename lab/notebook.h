// The records of an experiment, line by line: DIR/NAME.jsonl.
//
// The first line ("header") states the question, the machine and the settings; the last ("end")
// states that the experiment is complete. Between them are records of the experiment's own kinds,
// and three common kinds: "note" (a remark that is needed to read the numbers), "absent" (what
// could not be measured here, and why) and "part" (all records since the previous one belong to a
// finished part).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "bench/machine.h"
#include "io/append_file.h"

namespace baregrad::lab {

using Json = nlohmann::ordered_json;

struct Options {
  std::string out;         ///< the folder
  bool quick = false;      ///< small sizes, few repeats: a check, not a measurement
  int threads = 0;         ///< the most that are used; 0: all CPUs of this process
  std::uint64_t seed = 1;  ///< of inputs
};

class Notebook {
 public:
  using Tell = std::function<void(const std::string&)>;

  /// Opens or continues DIR/NAME.jsonl. Records after the last finished part were interrupted and
  /// are cut off. Throws ValueError when the file has other settings or is of another machine. An
  /// unfinished run of another build is started again, with a message; a finished one stays.
  /// `progress` is called with the current work, `say` with messages for the user.
  Notebook(std::string_view name, std::string_view question, std::string_view method,
           const Options& options, Tell progress, Tell say);

  bool finished() const noexcept { return finished_; }
  /// Whether the finished parts were measured by another build.
  bool of_another_build() const noexcept { return other_build_; }
  /// `seconds` since this notebook was opened; the seconds of earlier sessions are added.
  void finish(double seconds);

  bool quick() const noexcept { return options_.quick; }
  int threads() const noexcept { return threads_; }
  std::uint64_t seed() const noexcept { return options_.seed; }
  const bench::Machine& machine() const noexcept { return machine_; }
  /// The path of another file of the experiment: "training.trace.json".
  std::string file(std::string_view suffix) const;

  /// Calls `body` unless the file has this part. Its records are written to the file together at
  /// the end.
  void part(const std::string& key, const std::function<void()>& body);
  /// Adds a record of `kind`, inside a part.
  void add(std::string_view kind, const Json& fields);
  void note(const std::string& text);
  /// Records an absence, and tells the user in one line. Absences that the file has already are
  /// left out.
  void absent(const std::string& what, const std::string& why);
  void progress(const std::string& text) const;

 private:
  void open_or_resume(const Json& header);
  void check_header(const Json& found, const Json& header) const;
  void remember(const Json& record);
  void begin_afresh();
  void write(const Json& record);

  std::string name_;
  Options options_;
  int threads_;
  bench::Machine machine_;
  Tell progress_;
  Tell say_;
  std::string path_;
  std::unique_ptr<io::AppendFile> file_;
  std::set<std::string> done_;
  std::set<std::string> absent_;  // what, and why
  double earlier_seconds_ = 0;    // of parts finished in earlier sessions
  std::string pending_;           // records of the current part
  bool finished_ = false;
  bool other_build_ = false;
};

}  // namespace baregrad::lab

// What an experiment saw, line by line: DIR/NAME.jsonl.
//
// The first line says what was asked, where and how ("header"), the last that all was done ("end").
// Between them stand records of the experiment's own kinds, and three kinds that all share: "note"
// (something people must know to read the numbers), "absent" (what could not be measured here, and
// why) and "part" (all records since the last one belong to a part that is done).
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
  bool quick = false;      ///< a look, not a measurement: small sizes, few repeats
  int threads = 0;         ///< the most that are used; 0: all CPUs this process may run on
  std::uint64_t seed = 1;  ///< of inputs
};

class Notebook {
 public:
  using Tell = std::function<void(const std::string&)>;

  /// Opens or goes on with DIR/NAME.jsonl. What stands there behind the last part that is done was
  /// interrupted and is cut off. Throws ValueError when the file holds a run of other settings or
  /// of another machine. What another build of the program began is begun afresh, and said so; what
  /// it finished stays. `progress` is told what is being done, `say` what the user should read.
  Notebook(std::string_view name, std::string_view question, std::string_view method,
           const Options& options, Tell progress, Tell say);

  bool finished() const noexcept { return finished_; }
  /// Whether what is finished was measured by another build.
  bool of_another_build() const noexcept { return other_build_; }
  /// `seconds` since this notebook was opened; those of earlier sittings are added.
  void finish(double seconds);

  bool quick() const noexcept { return options_.quick; }
  int threads() const noexcept { return threads_; }
  std::uint64_t seed() const noexcept { return options_.seed; }
  const bench::Machine& machine() const noexcept { return machine_; }
  /// A file beside the records, named after the experiment: "training.trace.json".
  std::string file(std::string_view suffix) const;

  /// Does `body` unless the file has this part already. Its records reach the file together when it
  /// is done.
  void part(const std::string& key, const std::function<void()>& body);
  /// One record of `kind`, inside of a part.
  void add(std::string_view kind, const Json& fields);
  void note(const std::string& text);
  /// Says it to the user in one line too. Once in a run: what the file has already is left out.
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
  double earlier_seconds_ = 0;    // of parts that were done in earlier sittings
  std::string pending_;           // records of the part being done
  bool finished_ = false;
  bool other_build_ = false;
};

}  // namespace baregrad::lab

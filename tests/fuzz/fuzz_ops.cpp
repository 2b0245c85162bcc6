// Calls every public function with hostile arguments. A call must return valid tensors, or throw a
// typed error that opens with the function's name and leave everything unchanged.
//
//   fuzz_ops [--calls N] [--seed N] [--only INDEX] [--tallies]
//
// N calls default to BAREGRAD_FUZZ_CALLS, else 5,000,000 when BAREGRAD_TEST_LONG is 1, else
// 200,000; the seed to BAREGRAD_FUZZ_SEED, else 1. Call INDEX depends only on the seed and INDEX.
// BAREGRAD_OPS_HEADER is the path of ops.h, if the sources are not where the program was built.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <set>
#include <typeinfo>

#include <sys/time.h>
#include <unistd.h>

#include "backends/cpu/table.h"
#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "tests/fuzz/calls.h"
#include "tests/fuzz/check.h"

// The sanitizers read their options from functions of these names. Errors, and an absurd `new`, end
// the process with SIGABRT, which is handled below.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "abort_on_error=1:max_allocation_size_mb=1024";
}
extern "C" __attribute__((visibility("default"))) const char* __ubsan_default_options() {
  return "abort_on_error=1:print_stacktrace=1";
}

namespace baregrad::fuzz {
namespace {

// CPU seconds after which a call counts as hung; the slowest valid one takes a fraction of a
// second.
constexpr int kHangSeconds = 20;

struct Tally {
  std::uint64_t returned = 0;
  std::uint64_t refused = 0;
  double slowest = 0;  ///< CPU seconds
};

struct Slowest {
  double seconds = 0;
  std::uint64_t index = 0;
  std::string text;  ///< the function and its arguments
};

/// The CPU time of all threads: load from other processes does not count. While the timer for hangs
/// runs, the clock has a resolution of some milliseconds.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The current call, for handlers that run when the process dies.
struct Current {
  std::uint64_t seed = 0;
  std::uint64_t index = 0;
  const char* name = "";
} g_current;

void report_death() {
  char text[256];
  const int length = std::snprintf(
      text, sizeof text, "fuzz_ops: died in call %llu (%s); repeat with --seed %llu --only %llu\n",
      static_cast<unsigned long long>(g_current.index), g_current.name,
      static_cast<unsigned long long>(g_current.seed),
      static_cast<unsigned long long>(g_current.index));
  if (write(STDERR_FILENO, text, static_cast<std::size_t>(length)) < 0) _exit(3);
}

void on_signal(int number) {
  report_death();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

void on_hang(int) {
  constexpr char kText[] = "fuzz_ops: the call does not end\n";
  if (write(STDERR_FILENO, kText, sizeof kText - 1) < 0) _exit(3);
  report_death();
  _exit(3);
}

void watch_for_death() {
#if !defined(__SANITIZE_ADDRESS__)
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(number, on_signal);
#endif
  std::signal(SIGABRT, on_signal);
  std::signal(SIGPROF, on_hang);
}

void restart_hang_timer() {
  const itimerval timer{{0, 0}, {kHangSeconds, 0}};
  setitimer(ITIMER_PROF, &timer, nullptr);
}

/// "Tensor::split(sizes)" to "split".
std::string plain_name(const std::string& row) {
  const std::size_t from = row.rfind("::") == std::string::npos ? 0 : row.rfind("::") + 2;
  return row.substr(from, row.find('(', from) - from);
}

class Fuzzer {
 public:
  Fuzzer(std::uint64_t seed, bool verbose) : seed_(seed), verbose_(verbose) {
    // With BAREGRAD_ISA set, the calls run on that instruction set.
    static const kernels::Isa widest = kernels::active_isa();
    for (const auto part : {creation_rows, elementwise_rows, reduction_rows, view_rows,
                            movement_rows, indexing_rows, product_rows, conv_rows, tensor_rows}) {
      for (Row& row : part()) rows_.push_back(std::move(row));
    }
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      schedule_.insert(schedule_.end(), static_cast<std::size_t>(rows_[r].weight), r);
    }
    tallies_.resize(rows_.size());
    for (const Row& row : rows_) names_.insert(plain_name(row.name));
    for (const kernels::Isa isa : kernels::available_isas()) {
      if (isa <= widest) isas_.push_back(isa);
    }
    watch_for_death();
  }

  const std::vector<Row>& rows() const { return rows_; }

  /// What is wrong; empty when nothing is.
  std::string call(std::uint64_t index) {
    const std::size_t at = schedule_[index % schedule_.size()];
    const Row& row = rows_[at];
    g_current = {seed_, index, row.name.c_str()};
    if (verbose_)
      std::fprintf(stderr, "call %llu: %s\n", static_cast<unsigned long long>(index),
                   row.name.c_str());
    Source source(seed_ * 0x9e3779b97f4a7c15ULL ^ (index + 1) * 0xd1342543de82ef95ULL, verbose_);
    kernels::set_active_isa(isas_[static_cast<std::size_t>(source.below(std::ssize(isas_)))]);
    const AllocatorScope scope(pool_);
    const double start = cpu_seconds();
    std::string problem = judge(row, source, tallies_[at]);
    note_time(cpu_seconds() - start, index, source, tallies_[at]);
    return problem;
  }

  const Slowest& slowest() const { return slowest_; }

  /// Rows that never returned, or were never refused.
  std::string one_sided() const {
    std::string out;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (tallies_[r].returned == 0) out += "\n  " + rows_[r].name + " never returned";
      if (tallies_[r].refused == 0 && !rows_[r].never_refuses) {
        out += "\n  " + rows_[r].name + " never refused";
      }
    }
    return out;
  }

  Tally total() const {
    Tally sum;
    for (const Tally& tally : tallies_) {
      sum.returned += tally.returned;
      sum.refused += tally.refused;
    }
    return sum;
  }

  void print_tallies() const {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      std::printf("%-28s %8llu returned %8llu refused, slowest %.1f ms\n", rows_[r].name.c_str(),
                  static_cast<unsigned long long>(tallies_[r].returned),
                  static_cast<unsigned long long>(tallies_[r].refused), tallies_[r].slowest * 1e3);
    }
  }

  std::size_t schedule_size() const { return schedule_.size(); }

 private:
  void note_time(double seconds, std::uint64_t index, const Source& source, Tally& tally) {
    tally.slowest = std::max(tally.slowest, seconds);
    if (seconds < slowest_.seconds) return;
    slowest_ = {seconds, index, g_current.name};
    for (const Watched& block : source.watched()) slowest_.text += " " + describe(block.tensor);
  }

  /// A message opens with the function's name; an in-place form may use its op's name. Any step on
  /// the way may run out of memory.
  bool names_function(const Row& row, const Error& e) const {
    const std::string what = e.what();
    const std::size_t colon = what.find(": ");
    if (colon == std::string::npos || colon + 2 == what.size()) return false;
    std::string who = what.substr(0, colon);
    if (who.rfind("Tensor::", 0) == 0) who = who.substr(8);
    const std::string own = plain_name(row.name);
    if (who == own || who + "_" == own || who == "dims") return true;
    if (dynamic_cast<const OutOfMemory*>(&e) != nullptr) return names_.count(who) != 0;
    return std::find(row.also.begin(), row.also.end(), who) != row.also.end();
  }

  std::string judge(const Row& row, Source& source, Tally& tally) {
    const Tensor* target = nullptr;
    try {
      for (const Tensor& t : row.call(source)) {
        const std::string flaw = flaw_in(t, row.unset);
        if (!flaw.empty()) return "returned " + describe(t) + ": " + flaw;
      }
      target = source.written();
      ++tally.returned;
    } catch (const Error& e) {
      const std::string what = e.what();
      if (verbose_) std::fprintf(stderr, "refused: %s\n", what.c_str());
      if (typeid(e) == typeid(Error)) return "threw an error without a kind: " + what;
      if (!names_function(row, e)) return "threw without its name: " + what;
      ++tally.refused;
    } catch (const std::exception& e) {
      return std::string("threw ") + typeid(e).name() + ": " + e.what();
    }
    for (const Watched& block : source.watched()) {
      const std::string damage = damage_to(block, target);
      if (!damage.empty()) return (target != nullptr ? "returned, but " : "threw, but ") + damage;
    }
    return "";
  }

  std::uint64_t seed_;
  bool verbose_;
  std::vector<Row> rows_;
  std::vector<std::size_t> schedule_;
  std::vector<Tally> tallies_;
  Slowest slowest_;
  std::set<std::string> names_;
  std::vector<kernels::Isa> isas_;
  PoolAllocator pool_{kMemoryLimit};
};

/// Declarations in ops.h without a row.
std::string missing_rows(const std::vector<Row>& rows) {
  std::map<std::string, int> count;
  for (const Row& row : rows) ++count[row.name.substr(0, row.name.find('('))];
  const char* moved = std::getenv("BAREGRAD_OPS_HEADER");
  const std::string path = moved == nullptr ? BAREGRAD_OPS_HEADER : moved;
  std::ifstream header(path);
  std::string out;
  std::string line;
  int found = 0;
  const std::string pure = "[[nodiscard]] ";
  while (std::getline(header, line)) {
    if (line.rfind(pure, 0) == 0) line.erase(0, pure.size());
    const std::size_t bracket = line.find('(');
    if (line.rfind("BAREGRAD_API ", 0) != 0 || bracket == std::string::npos) continue;
    const std::size_t before = line.find_last_of(" &", bracket);
    const std::string name = line.substr(before + 1, bracket - before - 1);
    ++found;
    if (--count[name] < 0) out += "\n  " + name;
  }
  return found == 0 ? "\n  no declarations found in " + path : out;
}

std::uint64_t setting(const char* variable, std::uint64_t fallback) {
  const char* text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? fallback : std::strtoull(text, nullptr, 10);
}

struct Options {
  std::uint64_t calls = 0;
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> only;
  bool tallies = false;
};

bool parse(int argc, char** argv, Options& options) {
  const bool test_long = setting("BAREGRAD_TEST_LONG", 0) == 1;
  options.calls = setting("BAREGRAD_FUZZ_CALLS", test_long ? 5000000 : 200000);
  options.seed = setting("BAREGRAD_FUZZ_SEED", 1);
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--tallies") {
      options.tallies = true;
      continue;
    }
    if (i + 1 == argc) return false;
    const std::uint64_t value = std::strtoull(argv[++i], nullptr, 10);
    if (flag == "--calls") {
      options.calls = value;
    } else if (flag == "--seed") {
      options.seed = value;
    } else if (flag == "--only") {
      options.only = value;
    } else {
      return false;
    }
  }
  return true;
}

int repeat_one(const Options& options) {
  Fuzzer fuzzer(options.seed, true);
  const std::string problem = fuzzer.call(*options.only);
  std::fprintf(stderr, "%s, %.1f ms\n", problem.empty() ? "sound" : problem.c_str(),
               fuzzer.slowest().seconds * 1e3);
  return problem.empty() ? 0 : 1;
}

int run_all(const Options& options) {
  // Stops here: a fault that many functions share is reported often enough.
  constexpr int kMostProblems = 40;
  Fuzzer fuzzer(options.seed, false);
  const double start = cpu_seconds();
  int problems = 0;
  const std::string missing = missing_rows(fuzzer.rows());
  if (!missing.empty()) {
    std::fprintf(stderr, "fuzz_ops: declared in ops.h, but never called:%s\n", missing.c_str());
    ++problems;
  }
  for (std::uint64_t i = 0; i < options.calls && problems < kMostProblems; ++i) {
    restart_hang_timer();
    const std::string problem = fuzzer.call(i);
    if (problem.empty()) continue;
    ++problems;
    std::fprintf(stderr, "fuzz_ops: %s (call %llu) %s\n", g_current.name,
                 static_cast<unsigned long long>(i), problem.c_str());
    Fuzzer(options.seed, true).call(i);
    std::fprintf(stderr, "  repeat with --seed %llu --only %llu\n",
                 static_cast<unsigned long long>(options.seed), static_cast<unsigned long long>(i));
  }
  // Every function is accepted and refused within a few hundred calls.
  if (problems == 0 && options.calls >= 300 * fuzzer.schedule_size()) {
    const std::string one_sided = fuzzer.one_sided();
    if (!one_sided.empty()) {
      std::fprintf(stderr, "fuzz_ops: functions that were tested from one side only:%s\n",
                   one_sided.c_str());
      ++problems;
    }
  }
  if (options.tallies) fuzzer.print_tallies();
  const Tally total = fuzzer.total();
  const std::uint64_t calls = total.returned + total.refused;
  const Slowest& slowest = fuzzer.slowest();
  std::printf("%llu calls: %llu returned, %llu refused; %.0f a second of CPU time\n",
              static_cast<unsigned long long>(calls),
              static_cast<unsigned long long>(total.returned),
              static_cast<unsigned long long>(total.refused),
              static_cast<double>(calls) / (cpu_seconds() - start));
  std::printf("slowest: %.0f ms, call %llu: %s\n", slowest.seconds * 1e3,
              static_cast<unsigned long long>(slowest.index), slowest.text.c_str());
  return problems == 0 ? 0 : 1;
}

}  // namespace
}  // namespace baregrad::fuzz

int main(int argc, char** argv) {
  baregrad::fuzz::Options options;
  if (!baregrad::fuzz::parse(argc, argv, options)) {
    std::fprintf(stderr, "usage: fuzz_ops [--calls N] [--seed N] [--only INDEX] [--tallies]\n");
    return 2;
  }
  return options.only ? baregrad::fuzz::repeat_one(options) : baregrad::fuzz::run_all(options);
}

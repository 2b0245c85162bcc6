// Requests to Callgrind, its command line, and the files it writes.
#include "lab/counting/callgrind.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "baregrad/error.h"
#include "lab/child.h"
#include "lab/scratch_folder.h"

namespace baregrad::lab::callgrind {
namespace {

constexpr std::size_t kLine = 64;

// Valgrind recognises a sequence of instructions without effect, and reads the request from the
// registers named here. Written out so that the build does not need Valgrind's headers.
enum Request : std::uintptr_t {
  kWrite = 0x43540000,  // tool "CT"
  kForget = 0x43540001,
  kStart = 0x43540004,
  kStop = 0x43540005,
};

#if defined(__x86_64__) || defined(__aarch64__)
constexpr bool kCanAsk = true;
#else
constexpr bool kCanAsk = false;
#endif

void ask([[maybe_unused]] Request request) {
#if defined(__x86_64__)
  const std::uintptr_t message[6] = {request};
  std::uintptr_t answer = 0;
  asm volatile("rol $3, %%rdi; rol $13, %%rdi; rol $61, %%rdi; rol $51, %%rdi; xchg %%rbx, %%rbx"
               : "+d"(answer)
               : "a"(message)
               : "cc", "memory");
#elif defined(__aarch64__)
  const std::uintptr_t message[6] = {request};
  register std::uintptr_t answer asm("x3") = 0;
  register const std::uintptr_t* where asm("x4") = message;
  asm volatile(
      "ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; ror x12, x12, #61; "
      "orr x10, x10, x10"
      : "+r"(answer)
      : "r"(where)
      : "cc", "memory");
#endif
}

/// The words after "key:" at the start of a line; empty when there is no such line.
std::vector<std::string_view> words_after(std::string_view text, std::string_view key) {
  std::size_t at = 0;
  while (at < text.size() && !text.substr(at).starts_with(key)) {
    const std::size_t end = text.find('\n', at);
    at = end == std::string_view::npos ? text.size() : end + 1;
  }
  std::string_view line = text.substr(std::min(text.size(), at + key.size()));
  const std::size_t end = line.find('\n');
  // A line without a newline was cut off, possibly in its last number.
  if (end == std::string_view::npos) return {};
  line = line.substr(0, end);
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t length = std::min(line.find(' '), line.size());
    if (length > 0) words.push_back(line.substr(0, length));
    line.remove_prefix(std::min(line.size(), length + 1));
  }
  return words;
}

constexpr int kNotRun = -1;

/// The last line of the output, which says what went wrong.
std::string describe_failure(const Outcome& outcome) {
  std::string text = outcome.output;
  text.erase(text.find_last_not_of(" \n") + 1);
  text.erase(0, text.find_last_of('\n') + 1);
  if (outcome.status == kNotRun) return text;
  return fmt::format("valgrind --tool=callgrind ended with status {}: {}", outcome.status, text);
}

/// The counts of all trials that the process finished, and how it ended.
std::vector<Counted> count_in_one_process(std::span<const TrialRun> runs, const Caches& caches,
                                          Outcome& outcome) {
  const ScratchFolder folder("/tmp");
  if (!folder.ok()) throw IoError("lab: no folder can be made: " + folder.why());
  std::vector<std::string> command = {"valgrind",
                                      "--tool=callgrind",
                                      "--cache-sim=yes",
                                      "--branch-sim=yes",
                                      "--instr-atstart=no",
                                      "--I1=" + caches.instructions.option(),
                                      "--D1=" + caches.data.option(),
                                      "--LL=" + caches.last.option(),
                                      "--callgrind-out-file=" + folder.path() + "/callgrind",
                                      own_path(),
                                      "lab-trial"};
  for (std::string& argument : to_arguments(runs)) command.push_back(std::move(argument));
  outcome = run_child(command);
  std::vector<Counted> results;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::ifstream in(fmt::format("{}.{}", folder.path() + "/callgrind", i + 1), std::ios::binary);
    if (!in) break;
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    try {
      results.push_back({parse(text), ""});
    } catch (const ValueError& error) {
      results.push_back({std::nullopt, error.what()});
    }
  }
  return results;
}

}  // namespace

void start() { ask(kStart); }
void stop() { ask(kStop); }
void forget() { ask(kForget); }
void write() { ask(kWrite); }

std::string Cache::option() const { return fmt::format("{},{},{}", bytes, ways, line_bytes); }

Cache nearest_cache(std::size_t bytes) {
  constexpr std::size_t kLeastWays = 8;
  constexpr std::size_t kMostWays = 64;
  std::size_t lines = std::max(bytes / kLine, 2 * kLeastWays);
  // The odd factor: the number of sets is a power of two.
  std::size_t ways = lines >> std::countr_zero(lines);
  if (ways > kMostWays || lines < 2 * ways) {
    lines = std::bit_floor(lines);
    ways = 1;
  }
  while (ways < kLeastWays) ways *= 2;
  return {lines * kLine, static_cast<int>(ways), kLine};
}

Caches choose_caches(const bench::Machine& machine) {
  constexpr std::size_t kMostLast = 32UL << 20;
  std::size_t instructions = bench::data_cache_bytes(machine, 1);
  std::size_t last = bench::data_cache_bytes(machine, 2);
  for (const bench::Cache& cache : machine.caches) {
    if (cache.level == 1 && cache.type == "instruction") instructions = cache.bytes;
    if (cache.level > 1 && cache.type != "instruction") last = std::max(last, cache.bytes);
  }
  return {nearest_cache(instructions), nearest_cache(bench::data_cache_bytes(machine, 1)),
          nearest_cache(std::min(last, kMostLast))};
}

Counts parse(std::string_view text) {
  const std::vector<std::string_view> events = words_after(text, "events:");
  // Not the last line, "totals:", which counts some of the misses between two files twice.
  const std::vector<std::string_view> sums = words_after(text, "summary:");
  if (events.empty() || sums.empty()) {
    throw ValueError("lab: Callgrind's file is cut short: it has no line of events or of sums");
  }
  // Callgrind omits zeros at the end of a line.
  if (sums.size() > events.size()) {
    throw ValueError(
        fmt::format("lab: Callgrind's file has {} events but {} sums", events.size(), sums.size()));
  }
  std::map<std::string_view, double> values;
  for (std::size_t i = 0; i < events.size(); ++i) {
    std::uint64_t value = 0;
    if (i < sums.size()) {
      const char* const end = sums[i].data() + sums[i].size();
      const auto [rest, error] = std::from_chars(sums[i].data(), end, value);
      if (error != std::errc() || rest != end) {
        throw ValueError(
            fmt::format("lab: Callgrind's file has '{}' where a count should stand", sums[i]));
      }
    }
    values[events[i]] = static_cast<double>(value);
  }
  const auto sum = [&](std::string_view first,
                       std::string_view second = "") -> std::optional<double> {
    if (!values.contains(first) || (!second.empty() && !values.contains(second))) {
      return std::nullopt;
    }
    return values[first] + (second.empty() ? 0.0 : values[second]);
  };
  return {sum("Ir"),   sum("Dr"),   sum("Dw"),   sum("D1mr"),     sum("D1mw"),
          sum("DLmr"), sum("DLmw"), sum("I1mr"), sum("Bc", "Bi"), sum("Bcm", "Bim")};
}

std::vector<Counted> count(std::span<const TrialRun> runs, const Caches& caches) {
  std::vector<Counted> results;
  while (results.size() < runs.size()) {
    Outcome outcome;
    std::vector<Counted> more;
    try {
      more = count_in_one_process(runs.subspan(results.size()), caches, outcome);
    } catch (const IoError& error) {
      outcome = {kNotRun, error.what()};
    }
    for (Counted& each : more) results.push_back(std::move(each));
    if (results.size() == runs.size()) break;
    results.push_back({std::nullopt, describe_failure(outcome)});
  }
  return results;
}

std::string why_not(const Caches& caches) {
  if (!kCanAsk) return "Callgrind cannot be asked on this processor";
  const TrialRun nothing{"nothing", 1, 0};
  return count({&nothing, 1}, caches).front().why;
}

}  // namespace baregrad::lab::callgrind

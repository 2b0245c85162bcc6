// How every benchmark measures: ours and its peers take turns in one run, on the same inputs and
// threads, output allocation included; medians, with the 10th and 90th percentile beside them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "baregrad/tensor.h"
#include "bench/ceilings.h"
#include "bench/matmul_case.h"

namespace baregrad::bench {

/// Makes the compiler believe that `value` is looked at.
template <class T>
[[gnu::always_inline]] inline void keep(const T& value) {
  asm volatile("" : : "m"(value) : "memory");
}

/// The engine uses `threads` threads while alive.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
};

struct Options {
  int threads = 0;     ///< 0: as many as the engine uses
  double seconds = 1;  ///< of measuring per row, all implementations together
  bool quick = false;  ///< a look, not a measurement: few repeats, no 100-million rows
  std::vector<std::int64_t> sizes =
      {};  ///< what they count is each benchmark's own; empty: its own
  // Of matmul alone.
  DType dtype = DType::Float32;
  std::vector<MatmulCase> products = {};  ///< to measure in place of `sizes` or the usual ones
  std::vector<std::string> peers = {};    ///< that must be there; empty: those that are
};

/// One implementation of what a row does, `calls` times over.
struct Candidate {
  std::string implementation;
  std::function<void(std::int64_t calls)> run;
  std::optional<double> max_error = {};  ///< of its result, where the row has a truth
};

/// `once` inlined into a loop, so that only it is timed.
template <class Once>
Candidate candidate(std::string implementation, Once once) {
  return {std::move(implementation), [once](std::int64_t calls) {
            for (std::int64_t i = 0; i < calls; ++i) once();
          }};
}

inline constexpr const char* kOurs = "baregrad";

struct Row {
  std::string name;
  std::string dtype;
  std::string shape;
  int threads = 1;
  std::int64_t elements = 0;    ///< per call; 0: the row is not about elements
  std::int64_t bytes = 0;       ///< that must move per call; 0: the row is not about memory
  Stream stream = Stream::Add;  ///< the loop that moves bytes in the same manner
  double flops = 0;             ///< per call; 0: the row is not about arithmetic
  int fma_bits = 32;            ///< of the multiply-adds that the row is compared with
  std::int64_t calls = 0;       ///< per sample; 0: as many as make the clock's own cost disappear
  /// Before every turn on several threads. libgomp's workers spin for milliseconds after their last
  /// region, and would take a core from whoever is measured next.
  std::chrono::milliseconds settle{20};
  std::function<void()> prepare =
      {};  ///< before every sample, not timed; implies one call a sample
  std::vector<Candidate> candidates = {};  ///< ours first
};

struct Result {
  std::string bench;
  std::string row;
  std::string dtype;
  std::string shape;
  std::string implementation;
  int threads = 1;
  std::string isa;
  int repeats = 0;
  double median_ns = 0;
  double p10_ns = 0;
  double p90_ns = 0;
  // Absent when 0: the row is not about elements, memory or arithmetic, or has nothing to compare
  // with.
  double ns_per_element = 0;
  double gb_per_s = 0;
  double stream_gb_per_s = 0;  ///< the ceiling, measured in this run on as much memory
  double percent_of_stream = 0;
  double gflop_per_s = 0;
  double fma_gflop_per_s = 0;  ///< the ceiling, measured between the turns of this row
  double percent_of_fma = 0;
  std::optional<double> max_error = {};
  double ratio = 0;  ///< this peer's time / ours; for ours, the fastest peer's
};

/// One run of one or more benchmarks.
class Session {
 public:
  /// `progress` is told each row as it begins.
  explicit Session(Options options, std::function<void(const std::string&)> progress = {});

  const Options& options() const noexcept { return options_; }
  int threads() const noexcept { return threads_; }
  const Machine& machine() const noexcept { return machine_; }
  /// The user's sizes, else these.
  std::vector<std::int64_t> sizes(const std::vector<std::int64_t>& otherwise) const;

  /// Rows measured from here on belong to this benchmark.
  void begin(std::string bench);
  void announce(const std::string& row) const;
  /// Something people must know to read this benchmark's rows. Said once however often it comes.
  void note(const std::string& text);
  const std::vector<std::string>& notes() const noexcept { return notes_; }
  void measure(const Row& row);
  /// Adds results measured elsewhere: ours first, then its peers. Fills in what follows from them.
  void add(std::vector<Result> results);

  const std::vector<Result>& results() const noexcept { return results_; }

  /// How often a thread was taken off its CPU, per second, since begin(). Beyond a few dozen the
  /// machine had something else to do, and the timings say little.
  double interruptions_per_s() const noexcept;

 private:
  double ceiling(Stream stream, std::int64_t bytes, int threads);

  Options options_;
  int threads_;
  Machine machine_;
  std::function<void(const std::string&)> progress_;
  std::string bench_;
  std::map<std::tuple<Stream, std::size_t, int>, double> ceilings_;
  std::vector<Result> results_;
  std::vector<std::string> notes_;
  double measured_s_ = 0;
  double interruptions_ = 0;
};

/// Throws unless both computed the same: |ours - peer| <= tolerance * max(1, |peer|) throughout. A
/// benchmark of two different things would say nothing.
void check_same(const std::string& row, const Tensor& ours, const float* peer, double tolerance);

}  // namespace baregrad::bench

// How every benchmark measures: ours and its peers take turns in one run, with the same inputs and
// threads, including the allocation of outputs. Results are medians with the 10th and 90th
// percentile.
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

/// Prevents the compiler from removing the computation of `value`.
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
  int threads = 0;     ///< 0: the engine's default
  double seconds = 1;  ///< of measuring per row, for all implementations together
  bool quick = false;  ///< few repeats, no rows of 100 million elements: a check, not a measurement
  std::vector<std::int64_t> sizes =
      {};  ///< meaning and default depend on the benchmark; empty: the default
  // For matmul only.
  DType dtype = DType::Float32;
  std::vector<MatmulCase> products = {};  ///< to measure in place of `sizes` or the default ones
  /// Peers that must be present; empty: those that are installed.
  std::vector<std::string> peers = {};
};

/// One implementation of a row's work, run `calls` times.
struct Candidate {
  std::string implementation;
  std::function<void(std::int64_t calls)> run;
  std::optional<double> max_error = {};  ///< of its result, if the row has a reference
};

/// Inlines `once` into a loop, so that only it is timed.
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
  std::int64_t elements = 0;    ///< per call; 0: not an elementwise row
  std::int64_t bytes = 0;       ///< that must move per call; 0: not a memory row
  Stream stream = Stream::Add;  ///< the ceiling loop with the same reads and writes
  double flops = 0;             ///< per call; 0: not an arithmetic row
  int fma_bits = 32;            ///< of the multiply-add ceiling for this row
  std::int64_t calls = 0;       ///< per sample; 0: enough to hide the cost of reading the clock
  /// A pause before every turn on several threads. libgomp's workers spin for milliseconds after
  /// their last region, and would take a core from the next candidate.
  std::chrono::milliseconds settle{20};
  std::function<void()> prepare =
      {};  ///< before every sample, not timed; implies one call per sample
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
  // Absent when 0: the row does not count elements, bytes or operations, or has nothing to compare
  // with.
  double ns_per_element = 0;
  double gb_per_s = 0;
  double stream_gb_per_s = 0;  ///< the ceiling, measured in this run with as much memory
  double percent_of_stream = 0;
  double gflop_per_s = 0;
  double fma_gflop_per_s = 0;  ///< the ceiling, measured between the turns of this row
  double percent_of_fma = 0;
  std::optional<double> max_error = {};
  double ratio = 0;  ///< time of this peer / time of ours; in our row, of the fastest peer
};

/// One run of one or more benchmarks.
class Session {
 public:
  /// `progress` is called with each row before it is measured.
  explicit Session(Options options, std::function<void(const std::string&)> progress = {});

  const Options& options() const noexcept { return options_; }
  int threads() const noexcept { return threads_; }
  const Machine& machine() const noexcept { return machine_; }
  /// The sizes from the command line, or `otherwise`.
  std::vector<std::int64_t> sizes(const std::vector<std::int64_t>& otherwise) const;

  /// Rows measured from here on belong to this benchmark.
  void begin(std::string bench);
  void announce(const std::string& row) const;
  /// A remark that is needed to read this benchmark's rows. Repeated remarks are printed once.
  void note(const std::string& text);
  const std::vector<std::string>& notes() const noexcept { return notes_; }
  void measure(const Row& row);
  /// Adds results measured elsewhere: ours first, then its peers. Computes the derived fields.
  void add(std::vector<Result> results);

  const std::vector<Result>& results() const noexcept { return results_; }

  /// Involuntary context switches per second since begin(). Beyond a few dozen the machine was busy
  /// with other work, and the timings are unreliable.
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

/// Throws unless |ours - peer| <= tolerance * max(1, |peer|) for all elements: both must compute
/// the same.
void check_same(const std::string& row, const Tensor& ours, const float* peer, double tolerance);

}  // namespace baregrad::bench

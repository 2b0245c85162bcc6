// Runs candidates in turns, takes samples, sorts them.
#include "bench/harness.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <thread>

#include <sys/resource.h>

#include "backends/cpu/table.h"
#include "baregrad/error.h"
#include "baregrad/parallel.h"
#include "bench/quantile.h"

namespace baregrad::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 10;
constexpr int kQuickRounds = 3;
constexpr int kSamplesPerRound = 60;
constexpr double kSampleNs = 20e3;    // reading the clock takes a few tens of nanoseconds
constexpr double kFmaSeconds = 5e-3;  // per round

double time_ns(const Row& row, const Candidate& candidate, std::int64_t calls) {
  if (row.prepare) row.prepare();
  const Clock::time_point start = Clock::now();
  candidate.run(calls);
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() /
         static_cast<double>(calls);
}

/// The measurements of one candidate so far.
struct Samples {
  std::int64_t calls = 1;
  std::vector<double> ns;
};

/// First calls: they fill caches and pools, and give a first estimate of the time per call.
void warm_up(const Row& row, const Candidate& candidate, Samples& samples) {
  double ns = time_ns(row, candidate, 1);
  if (row.prepare) return;
  if (row.calls != 0) {
    samples.calls = row.calls;
    time_ns(row, candidate, row.calls);
    return;
  }
  while (ns * static_cast<double>(samples.calls) < kSampleNs) {
    samples.calls *= 2;
    ns = std::min(ns, time_ns(row, candidate, samples.calls));
  }
}

/// One turn: `budget_ns` of samples, at least one.
void take_turn(const Row& row, const Candidate& candidate, double budget_ns, Samples& samples) {
  if (row.threads > 1) std::this_thread::sleep_for(row.settle);
  // The other candidates have used the caches, and the workers sleep. A row of short calls makes
  // one untimed call first.
  if (!row.prepare) time_ns(row, candidate, samples.calls);
  double spent = 0;
  for (int i = 0; i < kSamplesPerRound && spent < budget_ns; ++i) {
    samples.ns.push_back(time_ns(row, candidate, samples.calls));
    spent += samples.ns.back() * static_cast<double>(samples.calls);
  }
}

double interruptions_so_far() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_nivcsw);
}

}  // namespace

ThreadScope::ThreadScope(int threads) : before_(get_num_threads()) { set_num_threads(threads); }
ThreadScope::~ThreadScope() { set_num_threads(before_); }

Session::Session(Options options, std::function<void(const std::string&)> progress)
    : options_(std::move(options)),
      threads_(options_.threads > 0 ? options_.threads : get_num_threads()),
      machine_(describe_machine()),
      progress_(std::move(progress)) {
  // Before any measurement: an invalid BAREGRAD_ISA throws here.
  kernels::active_isa();
}

std::vector<std::int64_t> Session::sizes(const std::vector<std::int64_t>& otherwise) const {
  return options_.sizes.empty() ? otherwise : options_.sizes;
}

void Session::begin(std::string bench) {
  bench_ = std::move(bench);
  notes_.clear();
  measured_s_ = 0;
  interruptions_ = 0;
}

double Session::interruptions_per_s() const noexcept {
  return measured_s_ > 0 ? interruptions_ / measured_s_ : 0;
}

void Session::announce(const std::string& row) const {
  if (progress_) progress_(bench_ + ": " + row);
}

void Session::note(const std::string& text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(text);
}

double Session::ceiling(Stream stream, std::int64_t bytes, int threads) {
  // Beyond all caches the speed depends little on the size: sizes within a factor of two share one
  // ceiling.
  const std::size_t beyond = beyond_caches(machine_);
  const std::size_t rounded = std::bit_floor(static_cast<std::size_t>(bytes));
  const std::tuple key{stream, std::min(rounded, beyond), threads};
  const auto found = ceilings_.find(key);
  if (found != ceilings_.end()) return found->second;
  const double seconds = options_.quick ? 0.03 : 0.15;
  const std::size_t over = std::min(static_cast<std::size_t>(bytes), beyond);
  return ceilings_[key] = stream_gb_per_s(stream, over, threads, seconds);
}

void Session::measure(const Row& row) {
  announce(row.name + " " + row.dtype + row.shape);
  const ThreadScope scope(row.threads);
  std::vector<Samples> samples(row.candidates.size());
  for (std::size_t k = 0; k < samples.size(); ++k) warm_up(row, row.candidates[k], samples[k]);

  const Clock::time_point start = Clock::now();
  const double interruptions = interruptions_so_far();
  const int rounds = options_.quick ? kQuickRounds : kRounds;
  const double turn_ns = options_.seconds * 1e9 / (rounds * static_cast<double>(samples.size()));
  std::vector<double> fma;
  for (int round = 0; round < rounds; ++round) {
    // In every round, because the clock rate varies: the share is then of a ceiling measured at the
    // same time.
    if (row.flops > 0) {
      if (row.threads > 1) std::this_thread::sleep_for(row.settle);
      fma.push_back(fma_gflop_per_s(row.fma_bits, row.threads, kFmaSeconds));
    }
    for (std::size_t i = 0; i < samples.size(); ++i) {
      // Every other round runs in reverse order, so that no candidate always follows the same one.
      const std::size_t k = round % 2 == 0 ? i : samples.size() - 1 - i;
      take_turn(row, row.candidates[k], turn_ns, samples[k]);
    }
  }

  measured_s_ += std::chrono::duration<double>(Clock::now() - start).count();
  interruptions_ += interruptions_so_far() - interruptions;

  std::sort(fma.begin(), fma.end());
  std::vector<Result> results(samples.size());
  for (std::size_t k = 0; k < samples.size(); ++k) {
    std::vector<double>& ns = samples[k].ns;
    std::sort(ns.begin(), ns.end());
    Result& r = results[k];
    r.row = row.name;
    r.dtype = row.dtype;
    r.shape = row.shape;
    r.implementation = row.candidates[k].implementation;
    r.threads = row.threads;
    r.repeats = static_cast<int>(ns.size());
    r.median_ns = quantile(ns, 0.5);
    r.p10_ns = quantile(ns, 0.1);
    r.p90_ns = quantile(ns, 0.9);
    if (row.elements > 0) r.ns_per_element = r.median_ns / static_cast<double>(row.elements);
    if (row.bytes > 0) {
      r.gb_per_s = static_cast<double>(row.bytes) / r.median_ns;
      r.stream_gb_per_s = ceiling(row.stream, row.bytes, row.threads);
      r.percent_of_stream = 100 * r.gb_per_s / r.stream_gb_per_s;
    }
    if (row.flops > 0) {
      r.gflop_per_s = row.flops / r.median_ns;
      r.fma_gflop_per_s = quantile(fma, 0.5);
      r.percent_of_fma = 100 * r.gflop_per_s / r.fma_gflop_per_s;
    }
    r.max_error = row.candidates[k].max_error;
  }
  add(std::move(results));
}

void Session::add(std::vector<Result> results) {
  const double ours = results[0].median_ns;
  for (std::size_t k = 0; k < results.size(); ++k) {
    Result& r = results[k];
    r.bench = bench_;
    r.isa = kernels::isa_name(kernels::active_isa());
    if (k == 0) continue;
    r.ratio = r.median_ns / ours;
    results[0].ratio = k == 1 ? r.ratio : std::min(results[0].ratio, r.ratio);
  }
  results_.insert(results_.end(), results.begin(), results.end());
}

void check_same(const std::string& row, const Tensor& ours, const float* peer, double tolerance) {
  const Tensor packed = ours.contiguous();
  const float* mine = packed.data<float>();
  for (std::int64_t i = 0; i < packed.numel(); ++i) {
    const double a = mine[i];
    const double b = peer[i];
    // The condition is written so that a NaN on one side only is a difference.
    if (std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b))) continue;
    if (std::isnan(a) && std::isnan(b)) continue;
    throw ValueError("bench: " + row + ": ours and the peer's results differ at element " +
                     std::to_string(i) + ": " + std::to_string(a) + " and " + std::to_string(b));
  }
}

}  // namespace baregrad::bench

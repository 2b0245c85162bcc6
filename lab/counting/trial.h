// Trials: small kernels by name, so that counters can watch one at a time, in this process or in
// one of its own (`baregrad lab-trial`). What is timed and what is counted is the same code.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baregrad::lab {

/// A kernel whose inputs are made.
using Body = std::function<void()>;

/// Trials of one kind: "stride:16" is of the family "stride" with the argument "16".
struct TrialFamily {
  std::string_view name;
  Body (*prepare)(std::string_view argument, std::int64_t size);
};

/// Makes the inputs of a trial: "nothing", "read" (size floats one after the other), "rung:NAME"
/// (size x size, of the ladder), and what the experiments add. Throws ValueError and lists the
/// families.
Body prepare_trial(std::string_view name, std::int64_t size);

// For families.

/// `count` numbers of few bits, whose sums are exact; they begin with a cache line. Whoever asks
/// for as many while others hold them shares them: trials that take turns would need memory each.
std::shared_ptr<const float[]> shared_numbers(std::int64_t count);
/// Something to write to, shared alike.
std::shared_ptr<float[]> shared_output(std::int64_t count);
/// The same numbers on pages of 2 MiB, or on as many as the kernel has; not shared.
std::shared_ptr<const float[]> numbers_on_huge_pages(std::int64_t count);
/// A whole number of at least 0. Throws ValueError.
std::int64_t parse_argument(std::string_view argument);

/// One run of a trial to be counted, after calls that only warm the caches.
struct TrialRun {
  std::string name;
  std::int64_t size = 0;
  int warm_ups = 1;
};

/// As the arguments of `baregrad lab-trial`: NAME SIZE WARM_UPS, again and again.
std::vector<std::string> to_arguments(std::span<const TrialRun> runs);
/// Throws ValueError.
std::vector<TrialRun> from_arguments(std::span<const std::string> arguments);

/// Runs them one after the other on one thread; Callgrind, where it watches, writes one file for
/// each.
void run_trials(std::span<const TrialRun> runs);

}  // namespace baregrad::lab

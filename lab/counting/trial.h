// Trials: small kernels with names, so that counters can measure one at a time, in this process or
// in a separate one (`baregrad lab-trial`). The same code is timed and counted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baregrad::lab {

/// A kernel with prepared inputs.
using Body = std::function<void()>;

/// Trials of one kind: "stride:16" is of the family "stride" with the argument "16".
struct TrialFamily {
  std::string_view name;
  Body (*prepare)(std::string_view argument, std::int64_t size);
};

/// Prepares a trial: "nothing", "read" (size consecutive floats), "rung:NAME" (size x size, of the
/// ladder), and the families of the experiments. Throws ValueError and lists the families.
Body prepare_trial(std::string_view name, std::int64_t size);

// Helpers for families.

/// `count` numbers of few bits, whose sums are exact, aligned to a cache line. Callers with the
/// same count share one block: trials that take turns would otherwise need a block each.
std::shared_ptr<const float[]> shared_numbers(std::int64_t count);
/// Memory to write to, shared in the same way.
std::shared_ptr<float[]> shared_output(std::int64_t count);
/// The same numbers, not shared, on huge pages of 2 MiB as far as the kernel has them.
std::shared_ptr<const float[]> numbers_on_huge_pages(std::int64_t count);
/// A whole number of at least 0. Throws ValueError.
std::int64_t parse_argument(std::string_view argument);

/// One run of a trial to be counted, after warm-up calls.
struct TrialRun {
  std::string name;
  std::int64_t size = 0;
  int warm_ups = 1;
};

/// As the arguments of `baregrad lab-trial`: NAME SIZE WARM_UPS, again and again.
std::vector<std::string> to_arguments(std::span<const TrialRun> runs);
/// Throws ValueError.
std::vector<TrialRun> from_arguments(std::span<const std::string> arguments);

/// Runs them one after the other on one thread. Under Callgrind, one file is written for each.
void run_trials(std::span<const TrialRun> runs);

}  // namespace baregrad::lab

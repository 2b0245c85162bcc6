// What `baregrad` can be told to do. Each returns the exit status: 0, 1 where a check failed, or 2
// for a wrong argument; what fails otherwise throws.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/harness.h"

namespace baregrad::cli {

std::string version_text();

int run_info(const std::string& json_path);

/// `baregrad bench` as it was typed.
struct BenchCommand {
  std::vector<std::string> names;
  bench::Options options;
  std::optional<std::string> dtype;
  std::vector<std::string> shapes;
  std::string check_path;  ///< empty: nothing is checked
  std::string json_path;
  /// Those given that only some benchmarks take: "--peers".
  std::vector<std::string> special = {};
};

int run_bench(BenchCommand command);

}  // namespace baregrad::cli

// What `baregrad` can be told to do. Each returns the exit status: 0, or 2 for a wrong argument;
// what fails otherwise throws.
#pragma once

#include <string>
#include <vector>

#include "bench/harness.h"

namespace baregrad::cli {

std::string version_text();

int run_info(const std::string& json_path);
int run_bench(const std::vector<std::string>& names, const bench::Options& options,
              const std::string& json_path);

}  // namespace baregrad::cli

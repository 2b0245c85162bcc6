// The file behind --check: the least speed required of each row.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/harness.h"

namespace baregrad::cli {

/// One required row. A row that is known to miss its target states the reason and the measured
/// value: it fails only if it falls clearly below that value.
struct Target {
  bench::MatmulCase product;
  double min_ratio = 0;
  std::optional<double> min_percent_of_fma = {};
  std::optional<double> measured = {};
  std::optional<double> measured_percent_of_fma = {};
  std::string reason = {};
};

struct TargetFile {
  std::vector<std::string> peers;  ///< peers that must be present; empty: those that are installed
  std::vector<Target> rows;
};

/// Throws IoError, or ValueError that names the file and the line or field at fault.
TargetFile read_targets(const std::string& path);

struct Checked {
  std::string table;  ///< one line per row of the run
  int run = 0;
  int failed = 0;
};

Checked check_targets(std::span<const Target> targets, std::span<const bench::Result> results);

}  // namespace baregrad::cli

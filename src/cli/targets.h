// The file behind --check: how fast ours must at least be, row by row.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/harness.h"

namespace baregrad::cli {

/// One row that must hold. A row known to miss its target says why, and what was measured: it then
/// fails only where it falls clearly below that.
struct Target {
  bench::MatmulCase product;
  double min_ratio = 0;
  std::optional<double> min_percent_of_fma = {};
  std::optional<double> measured = {};
  std::optional<double> measured_percent_of_fma = {};
  std::string reason = {};
};

struct TargetFile {
  std::vector<std::string> peers;  ///< that must be there; empty: those that are
  std::vector<Target> rows;
};

/// Throws IoError, or ValueError that names the file and the line or field at fault.
TargetFile read_targets(const std::string& path);

struct Checked {
  std::string table;  ///< one line per row that was run
  int run = 0;
  int failed = 0;
};

Checked check_targets(std::span<const Target> targets, std::span<const bench::Result> results);

}  // namespace baregrad::cli

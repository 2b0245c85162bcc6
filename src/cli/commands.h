// The commands of `baregrad`. Each returns the exit status: 0, 1 if a check failed, or 2 for a
// wrong argument. Other failures are exceptions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "baregrad/train.h"
#include "bench/harness.h"
#include "lab/lab.h"

namespace baregrad::cli {

std::string version_text();

int run_info(const std::string& json_path);

/// The arguments of `baregrad bench`.
struct BenchCommand {
  std::vector<std::string> names;
  bench::Options options;
  std::optional<std::string> dtype;
  std::vector<std::string> shapes;
  std::string check_path;  ///< empty: no check
  std::string json_path;
  /// The options given that only some benchmarks take: "--peers".
  std::vector<std::string> special = {};
};

int run_bench(BenchCommand command);

struct TrainCommand {
  train::Config config;
  std::vector<std::string> given;  ///< members of `config` that the command line sets
  std::string out;                 ///< empty: a new folder in runs/
  bool resume = false;
  int threads = 0;  ///< 0: the engine's default
  std::string json_path;
};
/// Returns 130 when it was interrupted, as shells report it.
int run_train(const TrainCommand& command);

struct EvalCommand {
  std::string run;
  std::string data_folder;
  std::string json_path;
};
int run_eval(const EvalCommand& command);

struct PredictCommand {
  std::string run;
  std::string image;            ///< a file, or "test:N"
  std::uint64_t max_bytes = 0;  ///< of the decoded image; 0: the default limit
  std::string data_folder;
  std::string json_path;
};
int run_predict(const PredictCommand& command);

struct GraphCommand {
  std::string run;
  std::string data_folder;
  std::string dot_path;
  std::string svg_path;
};
int run_graph(const GraphCommand& command);

/// `run.names` may be "list" alone, or contain "all".
int run_lab(lab::Run run);
/// `arguments`: see lab::from_arguments.
int run_lab_trial(const std::vector<std::string>& arguments);

}  // namespace baregrad::cli

// The command line: `baregrad info`, `train`, `eval`, `predict`, `graph`, `bench`, `lab`. Exit
// status 0, 1 for a failure, 2 for wrong arguments.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "baregrad/error.h"
#include "bench/benches.h"
#include "bench/peers_blas.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/options.h"
#include "cli/output.h"

namespace baregrad::cli {
namespace {

constexpr int kFailure = 1;
constexpr int kWrongArguments = 2;

std::string list_benches() {
  std::string text = "Benchmarks:\n";
  for (const bench::Bench& bench : bench::benches()) {
    text += fmt::format("  {:<26}  {} (--sizes: {})\n", bench.name, bench.doc, bench.sizes);
  }
  return text;
}

/// A ValueError thrown by `parse` is a wrong argument.
template <class Parse>
CLI::Validator parsed_by(Parse parse) {
  return {[parse](std::string& text) -> std::string {
            try {
              parse(text);
              return {};
            } catch (const ValueError& error) {
              return error.what();
            }
          },
          "", "parsed"};
}

/// Options that only some benchmarks take.
std::vector<CLI::Option*> add_special(CLI::App* bench, BenchCommand& command) {
  const auto names = bench::peers::blas_names();
  auto* dtype =
      bench->add_option("--dtype", command.dtype, "matmul: f32 (the usual), f64, f16, bf16")
          ->check(parsed_by(bench::matmul_dtype))
          ->option_text("D");
  auto* shapes =
      bench
          ->add_option("--shapes", command.shapes, "matmul: shapes instead of --sizes; BxMxNxK too")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->check(parsed_by([](const std::string& text) {
            bench::MatmulCase product;
            bench::set_shape(product, text);
          }))
          ->excludes("--sizes")
          ->option_text("MxNxK,...");
  auto* peers = bench
                    ->add_option("--peers", command.options.peers,
                                 fmt::format("matmul: of {}; all that are there when not given",
                                             fmt::join(names, ",")))
                    ->delimiter(',')
                    ->allow_extra_args(false)
                    ->check(CLI::IsMember(std::vector<std::string>(names.begin(), names.end())))
                    ->option_text("P,...");
  auto* check = add_path(bench, "--check", command.check_path,
                         "matmul: fail where ours is slower than FILE says")
                    ->option_text("FILE");
  return {dtype, shapes, peers, check};
}

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kAnyUnsigned = std::numeric_limits<std::uint64_t>::max();

/// Maps members of the config, by name, to the options that set them.
class ConfigOptions {
 public:
  explicit ConfigOptions(TrainCommand& command) : command_(command) {}

  CLI::Option* add(const char* member, CLI::Option* option, const std::string& kind) {
    added_.emplace_back(member, option->option_text(kind));
    return option;
  }
  /// After parsing: notes which of them were given.
  void note_given() const {
    for (const auto& [member, option] : added_) {
      if (option->count() > 0) command_.given.emplace_back(member);
    }
  }

 private:
  TrainCommand& command_;
  std::vector<std::pair<const char*, CLI::Option*>> added_;
};

/// "mnist, fashion or digits"
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) text += i + 1 < names.size() ? ", " : " or ";
    text += names[i];
  }
  return text;
}

ConfigOptions add_train(CLI::App* train, TrainCommand& command) {
  ConfigOptions options(command);
  train::Config& c = command.config;
  const auto add_choice = [&](const char* member, const char* option, std::string& value,
                              const std::string& doc, const std::string& kind) {
    options.add(member, train->add_option(option, value, doc), kind)
        ->check(CLI::IsMember(train::Config::choices(member)));
  };
  // The ranges are those of Config::check, which also applies to programs.
  const auto add_count = [&](const char* member, const char* option, std::int64_t& value,
                             const char* doc) {
    options.add(member, add_number<std::int64_t>(train, option, value, 1, 1'000'000'000, doc), "N");
  };
  const auto add_real = [&](const char* member, const char* option, double& value, double most,
                            const char* doc, const char* kind) {
    options.add(member, add_number<double>(train, option, value, 0, most, doc), kind);
  };
  add_choice("data", "data", c.data,
             listed(train::Config::choices("data")) + "; the best that is found if not said",
             fmt::format("[{}]", fmt::join(train::Config::choices("data"), "|")));
  add_choice("model", "--model", c.model, "mlp (the usual) or cnn", "M");
  options.add("hidden",
              add_numbers(train, "--hidden", c.hidden, 1'000'000,
                          "Hidden layers of an mlp, 512,256 if not said"),
              "N,...");
  add_count("epochs", "--epochs", c.epochs, "Rounds through the data, 10 if not said");
  add_count("batch", "--batch", c.batch, "Images per step, 64 if not said");
  add_real("lr", "--lr", c.lr, 1000, "Learning rate, 0.001 if not said", "X");
  add_real("weight_decay", "--weight-decay", c.weight_decay, 1000, "0.01 if not said", "X");
  add_real("dropout", "--dropout", c.dropout, 1, "Of hidden layers, 0.1 if not said", "P");
  add_choice("optimizer", "--optimizer", c.optimizer,
             listed(train::Config::choices("optimizer")) + "; " + c.optimizer + " if not said",
             "O");
  add_choice("schedule", "--schedule", c.schedule,
             "Of the learning rate: cosine (the usual), constant, onecycle or step", "S");
  options.add("seed",
              add_number<std::uint64_t>(train, "--seed", c.seed, 0, kAnyUnsigned,
                                        "Of weights, order and dropout, 0 if not said"),
              "N");
  add_count("items", "--items", c.items, "Learn from the first N images alone");
  add_count("test_items", "--test-items", c.test_items, "Test on the first N images alone");
  options.add("workers",
              add_number<int>(train, "--workers", c.workers, 0, 64,
                              "Threads that prepare batches; none of their own if not said"),
              "N");
  add_choice("alloc", "--alloc", c.alloc, "Memory of a step: pool (the usual), arena or system",
             "A");
  add_count("checkpoint_steps", "--checkpoint-steps", c.checkpoint_steps,
            "Steps between checkpoints; one per epoch if not said");
  options.add(
      "keep",
      add_number<int>(train, "--keep", c.keep, 1, 1'000'000, "Checkpoints on disk, 3 if not said"),
      "N");
  options.add("data_folder",
              add_path(train, "--data", c.data_folder, "Where to look for data first"), "DIR");
  add_number<int>(train, "--threads", command.threads, 1, 1024, "Threads of the engine, 1 to 1024")
      ->option_text("N");
  add_path(train, "--out", command.out, "The run's folder; a new one in runs/ if not said")
      ->option_text("RUN_DIR");
  train->add_flag("--resume", command.resume, "Go on with the run in --out")->option_text(" ");
  add_path(train, "--json", command.json_path, "Also write every epoch to FILE as a JSON object")
      ->option_text("FILE");
  return options;
}

/// The run, and the data, for eval, predict and graph.
template <class Command>
CLI::App* add_on_run(CLI::App& app, const char* name, const char* doc, Command& command) {
  CLI::App* sub = app.add_subcommand(name, doc);
  add_path(sub, "run", command.run, "The folder of a run")->required()->option_text("RUN_DIR");
  add_path(sub, "--data", command.data_folder,
           "Where to look for data first; where the run found it if not said")
      ->option_text("DIR");
  return sub;
}

void add_lab(CLI::App* app, lab::Run& run, bool& no_report) {
  app->add_option("names", run.names, "Which experiments: list, all, or names from the list")
      ->required()
      ->option_text("NAME...");
  add_path(app, "--out", run.options.out, "Folder of the results; what it holds is not done again")
      ->option_text("DIR");
  app->add_flag("--quick", run.options.quick, "A look, not a measurement")->option_text(" ");
  add_number<int>(app, "--threads", run.options.threads, 1, 1024,
                  "The most threads to use; all CPUs if not said")
      ->option_text("N");
  add_number<std::uint64_t>(app, "--seed", run.options.seed, 0, kAnyUnsigned,
                            "Of the inputs, 1 if not said")
      ->option_text("N");
  app->add_flag("--no-report", no_report, "Records alone: no pictures, no pages")->option_text(" ");
}

void add_json(CLI::App* app, std::string& path, const char* doc) {
  add_path(app, "--json", path, doc)->option_text("FILE");
}

/// All commands, their options, and what runs them.
class CommandLine {
 public:
  CommandLine();
  /// The exit status of the command that the arguments name.
  int run(int argc, char** argv);

 private:
  struct Command {
    const CLI::App* app;
    std::function<int()> run;
    bool reads_data;  ///< and so BAREGRAD_DATA
  };
  void add_info_command();
  void add_train_command();
  void add_eval_command();
  void add_predict_command();
  void add_graph_command();
  void add_bench_command();
  void add_lab_commands();
  void print_help(const CLI::Success& asked) const;

  CLI::App app_{"A deep-learning engine from the bytes up.", "baregrad"};
  std::vector<Command> commands_;
  std::string info_json_path_;
  TrainCommand train_;
  EvalCommand eval_;
  PredictCommand predict_;
  GraphCommand graph_;
  BenchCommand bench_;
  lab::Run lab_;
  bool lab_without_report_ = false;
  std::vector<std::string> lab_trials_;
};

CommandLine::CommandLine() {
  app_.set_version_flag("--version", version_text(), "Print the version and exit");
  app_.require_subcommand(1);
  app_.footer(
      "Environment: BAREGRAD_NUM_THREADS, BAREGRAD_ISA=scalar|sse4|avx2|avx512,\n"
      "BAREGRAD_ALLOC=system|pool|arena[:MiB], BAREGRAD_DATA=DIR, BAREGRAD_MKL=FILE (libmkl_rt, a "
      "peer of bench matmul),\n"
      "BAREGRAD_LIBTORCH_PEER=FILE (a peer of bench autograd, overhead and alloc; make bench "
      "builds "
      "it).\n"
      "Exit status: 0, 1 for a failure, 2 for wrong arguments.");
  // In the order of the help.
  add_info_command();
  add_train_command();
  add_eval_command();
  add_predict_command();
  add_graph_command();
  add_bench_command();
  add_lab_commands();
}

void CommandLine::add_info_command() {
  CLI::App* info = app_.add_subcommand("info", "The machine, how it is used, and what it can do");
  add_json(info, info_json_path_, "Also write all of it to FILE as one JSON object");
  commands_.push_back({info, [this] { return run_info(info_json_path_); }, false});
}

void CommandLine::add_train_command() {
  CLI::App* train = app_.add_subcommand("train", "Train a network on images, in a run's folder");
  commands_.push_back({train,
                       [this, options = add_train(train, train_)] {
                         options.note_given();
                         return run_train(train_);
                       },
                       true});
}

void CommandLine::add_eval_command() {
  CLI::App* eval = add_on_run(app_, "eval", "Test a trained network", eval_);
  add_json(eval, eval_.json_path, "Also write the result to FILE");
  commands_.push_back({eval, [this] { return run_eval(eval_); }, true});
}

void CommandLine::add_predict_command() {
  CLI::App* predict =
      add_on_run(app_, "predict", "What a trained network sees in an image", predict_);
  add_path(predict, "image", predict_.image, "A PNG, PGM or PPM file, or test:N")
      ->required()
      ->option_text("IMAGE");
  add_number<std::uint64_t>(predict, "--max-bytes", predict_.max_bytes, 1, kAnyUnsigned,
                            "Largest image in memory; 64 MiB or 100 times the file if not said")
      ->option_text("N");
  add_json(predict, predict_.json_path, "Also write the result to FILE");
  commands_.push_back({predict, [this] { return run_predict(predict_); }, true});
}

void CommandLine::add_graph_command() {
  CLI::App* graph = add_on_run(
      app_, "graph", "The recorded graph of a step, with shapes and gradient norms", graph_);
  add_path(graph, "--dot", graph_.dot_path, "For Graphviz")->option_text("FILE");
  add_path(graph, "--svg", graph_.svg_path, "Drawn by Graphviz")->option_text("FILE");
  commands_.push_back({graph, [this] { return run_graph(graph_); }, true});
}

void CommandLine::add_bench_command() {
  bench::Options& options = bench_.options;
  CLI::App* bench = app_.add_subcommand("bench", "Measure against peers in one run");
  bench->add_option("names", bench_.names, "Which benchmarks, see below")
      ->required()
      ->option_text("NAME...");
  add_numbers(bench, "--sizes", options.sizes, kAny, "Sizes to measure instead of the usual ones")
      ->option_text("N,...");
  add_number<int>(bench, "--threads", options.threads, 1, 1024, "Threads on either side, 1 to 1024")
      ->option_text("N");
  auto* seconds = add_number<double>(bench, "--seconds", options.seconds, 0.001, 3600,
                                     "Time per row, 1 when not given")
                      ->option_text("S");
  bench->add_flag("--quick", options.quick, "A look, not a measurement")
      ->excludes(seconds)
      ->option_text(" ");
  std::vector<CLI::Option*> special = add_special(bench, bench_);
  add_json(bench, bench_.json_path, "Also write every result to FILE, one JSON object per line");
  bench->footer(list_benches());
  commands_.push_back({bench,
                       [this, special = std::move(special)] {
                         constexpr double kQuickSeconds = 0.05;
                         if (bench_.options.quick) bench_.options.seconds = kQuickSeconds;
                         for (const CLI::Option* option : special) {
                           if (option->count() > 0) bench_.special.push_back(option->get_name());
                         }
                         return run_bench(std::move(bench_));
                       },
                       false});
}

void CommandLine::add_lab_commands() {
  CLI::App* lab = app_.add_subcommand("lab", "Experiments: from the naive loop to the roofline");
  add_lab(lab, lab_, lab_without_report_);
  commands_.push_back({lab,
                       [this] {
                         lab_.report = !lab_without_report_;
                         return run_lab(std::move(lab_));
                       },
                       false});
  // For the lab itself, which runs it under a simulator of caches: no help shows it.
  CLI::App* trial = app_.add_subcommand("lab-trial", "Run kernels of the lab once")->group("");
  trial->add_option("trials", lab_trials_, "NAME SIZE WARM_UPS, again and again")->required();
  commands_.push_back({trial, [this] { return run_lab_trial(lab_trials_); }, false});
}

int CommandLine::run(int argc, char** argv) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    print_help(asked);
    return 0;
  } catch (const CLI::ParseError& error) {
    complain(fmt::format("{}\nTry 'baregrad --help'.", error.what()));
    return kWrongArguments;
  }
  check_environment();
  // There is exactly one: parse() requires a subcommand.
  const auto command = std::find_if(commands_.begin(), commands_.end(),
                                    [](const Command& c) { return c.app->parsed(); });
  if (command->reads_data) check_data_variable();
  return command->run();
}

/// Printed by us, not by CLI11: a closed pipe is no error.
void CommandLine::print_help(const CLI::Success& asked) const {
  Output out;
  const bool version = dynamic_cast<const CLI::CallForVersion*>(&asked) != nullptr;
  // App::help() descends to the command that was named.
  out.print(version ? version_text() + "\n" : app_.help());
  out.finish();
}

}  // namespace
}  // namespace baregrad::cli

int main(int argc, char** argv) {
  // SIGPIPE is ignored: Output notices a closed reader itself.
  std::signal(SIGPIPE, SIG_IGN);
  if (!baregrad::cli::open_standard_streams()) return baregrad::cli::kFailure;
  // SIGXFSZ is ignored: a file that reaches the size limit becomes a write error with a message.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return baregrad::cli::CommandLine().run(argc, argv);
  } catch (const std::bad_alloc&) {
    baregrad::cli::complain("out of memory");
  } catch (const std::exception& error) {
    baregrad::cli::complain(error.what());
  }
  return baregrad::cli::kFailure;
}

// The command line: `baregrad info`, `baregrad bench`. Exit status 0, 1 for a failure, 2 for wrong
// arguments.
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "baregrad/error.h"
#include "bench/benches.h"
#include "bench/peers_blas.h"
#include "cli/commands.h"
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

CLI::Validator positive() {
  return {[](std::string& text) -> std::string {
            std::int64_t value = 0;
            const char* end = text.data() + text.size();
            const auto [stop, error] = std::from_chars(text.data(), end, value);
            if (error == std::errc() && stop == end && value >= 1) return {};
            return fmt::format("'{}' is not a whole number from 1 to 2^63 - 1", text);
          },
          "", "positive"};
}

/// What `parse` throws a ValueError for is a wrong argument.
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

/// Options that not every benchmark takes.
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
  auto* check = bench
                    ->add_option("--check", command.check_path,
                                 "matmul: fail where ours is slower than FILE says")
                    ->check([](const std::string& text) {
                      return text.empty() ? "the file has no name" : std::string();
                    })
                    ->option_text("FILE");
  return {dtype, shapes, peers, check};
}

int run(int argc, char** argv) {
  CLI::App app{"A deep-learning engine from the bytes up.", "baregrad"};
  app.set_version_flag("--version", version_text(), "Print the version and exit");
  app.require_subcommand(1);
  app.footer(
      "Environment: BAREGRAD_NUM_THREADS, BAREGRAD_ISA=scalar|sse4|avx2|avx512,\n"
      "BAREGRAD_ALLOC=system|pool|arena[:MiB], BAREGRAD_MKL=FILE (libmkl_rt, a peer of bench "
      "matmul).\n"
      "Exit status: 0, 1 for a failure, 2 for wrong arguments.");

  BenchCommand command;
  bench::Options& options = command.options;
  const auto add_json = [&command](CLI::App* to, const char* what) {
    to->add_option("--json", command.json_path, what)->type_name("FILE");
  };

  CLI::App* info = app.add_subcommand("info", "The machine, how it is used, and what it can do");
  add_json(info, "Also write all of it to FILE as one JSON object");

  CLI::App* bench = app.add_subcommand("bench", "Measure against peers in one run");
  bench->add_option("names", command.names, "Which benchmarks, see below")
      ->required()
      ->option_text("NAME...");
  bench->add_option("--sizes", options.sizes, "Sizes to measure instead of the usual ones")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(positive())
      ->option_text("N,...");
  bench->add_option("--threads", options.threads, "Threads on either side, 1 to 1024")
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
  auto* seconds = bench->add_option("--seconds", options.seconds, "Time per row, 1 when not given")
                      ->check(CLI::Range(0.001, 3600.0))
                      ->option_text("S");
  bench->add_flag("--quick", options.quick, "A look, not a measurement")
      ->excludes(seconds)
      ->option_text(" ");
  const std::vector<CLI::Option*> special = add_special(bench, command);
  add_json(bench, "Also write every result to FILE, one JSON object per line");
  bench->footer(list_benches());

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    // Printed by us: a closed pipe is no error.
    Output out;
    const bool version = dynamic_cast<const CLI::CallForVersion*>(&help) != nullptr;
    // App::help() descends to the command that was named.
    out.print(version ? version_text() + "\n" : app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "baregrad: {}\nTry 'baregrad --help'.\n", error.what());
    return kWrongArguments;
  }
  constexpr double kQuickSeconds = 0.05;
  if (options.quick) options.seconds = kQuickSeconds;
  for (const CLI::Option* option : special) {
    if (option->count() > 0) command.special.push_back(option->get_name());
  }
  return info->parsed() ? run_info(command.json_path) : run_bench(std::move(command));
}

}  // namespace
}  // namespace baregrad::cli

int main(int argc, char** argv) {
  // Output notices a reader that went away by itself.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return baregrad::cli::run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("baregrad: out of memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "baregrad: %s\n", error.what());
  }
  return baregrad::cli::kFailure;
}

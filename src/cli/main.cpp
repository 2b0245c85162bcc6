// The command line: `baregrad info`, `baregrad bench`. Exit status 0, 1 for a failure, 2 for wrong
// arguments.
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "baregrad/error.h"
#include "bench/benches.h"
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

int run(int argc, char** argv) {
  CLI::App app{"A deep-learning engine from the bytes up.", "baregrad"};
  app.set_version_flag("--version", version_text(), "Print the version and exit");
  app.require_subcommand(1);
  app.footer(
      "Environment: BAREGRAD_NUM_THREADS, BAREGRAD_ISA=scalar|sse4|avx2|avx512,\n"
      "BAREGRAD_ALLOC=system|pool|arena[:MiB]. Exit status: 0, 1 for a failure, 2 for wrong "
      "arguments.");

  std::string json_path;
  const auto add_json = [&json_path](CLI::App* command, const char* what) {
    command->add_option("--json", json_path, what)->type_name("FILE");
  };

  CLI::App* info = app.add_subcommand("info", "The machine, how it is used, and what it can do");
  add_json(info, "Also write all of it to FILE as one JSON object");

  CLI::App* bench = app.add_subcommand("bench", "Measure against peers in one run");
  std::vector<std::string> names;
  bench::Options options;
  bench->add_option("names", names, "Which benchmarks, see below")
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
  return info->parsed() ? run_info(json_path) : run_bench(names, options, json_path);
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

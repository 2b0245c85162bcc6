// `baregrad bench`: a table on the terminal, and one JSON object per measurement for programs.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "backends/cpu/table.h"
#include "baregrad/error.h"
#include "bench/benches.h"
#include "cli/commands.h"
#include "cli/json_file.h"
#include "cli/output.h"
#include "cli/targets.h"

namespace baregrad::cli {
namespace {

using bench::Result;

struct Column {
  std::string_view title;
  bool left;
  std::string (*cell)(const Result& result);
};

std::string number(double value, int digits) {
  return value == 0 ? "" : fmt::format("{:.{}f}", value, digits);
}

const Column kColumns[] = {
    {"row", true, [](const Result& r) { return r.row; }},
    {"shape", true, [](const Result& r) { return r.shape; }},
    {"implementation", true, [](const Result& r) { return r.implementation; }},
    {"median", false, [](const Result& r) { return time_text(r.median_ns); }},
    {"p10", false, [](const Result& r) { return time_text(r.p10_ns); }},
    {"p90", false, [](const Result& r) { return time_text(r.p90_ns); }},
    {"ns/element", false, [](const Result& r) { return number(r.ns_per_element, 3); }},
    {"GB/s", false, [](const Result& r) { return number(r.gb_per_s, 1); }},
    {"memory-bound", false,
     [](const Result& r) {
       return r.percent_of_stream == 0 ? "" : fmt::format("{:.0f} %", r.percent_of_stream);
     }},
    {"GFLOP/s", false, [](const Result& r) { return number(r.gflop_per_s, 1); }},
    {"of FMA", false,
     [](const Result& r) {
       return r.percent_of_fma == 0 ? "" : fmt::format("{:.0f} %", r.percent_of_fma);
     }},
    {"error", false,
     [](const Result& r) { return r.max_error ? fmt::format("{:.1e}", *r.max_error) : ""; }},
    {"ratio", false,
     [](const Result& r) {
       return r.implementation == bench::kOurs || r.ratio == 0 ? ""
                                                               : fmt::format("{:.2f}", r.ratio);
     }},
};

bool is_ours(const Result& result) { return result.implementation == bench::kOurs; }

/// Whether arithmetic rows differ in `member`. Then the table needs a column for it.
template <class Member>
bool varies(std::span<const Result> results, Member Result::*member) {
  return std::any_of(results.begin(), results.end(), [&](const Result& r) {
    return r.gflop_per_s != 0 && r.*member != results.front().*member;
  });
}

std::string results_table(std::span<const Result> results) {
  const bool threads = varies(results, &Result::threads);
  const bool dtypes = varies(results, &Result::dtype);
  Table table;
  const auto add = [&](const Column& column, bool shared) {
    std::vector<std::string> cells;
    for (const Result& result : results) {
      // A peer's row follows ours; values equal to ours are left empty.
      cells.push_back(shared && !is_ours(result) ? "" : column.cell(result));
    }
    table.add(column.title, column.left, std::move(cells));
  };
  for (const Column& column : kColumns) {
    const bool shared = &column < &kColumns[2];
    add(column, shared);
    if (&column != &kColumns[1]) continue;
    if (dtypes) add({"dtype", true, [](const Result& r) { return r.dtype; }}, true);
    if (threads) {
      add({"threads", false, [](const Result& r) { return std::to_string(r.threads); }}, true);
    }
  }
  return table.text();
}

/// One line per arithmetic row: ours and the fastest peer. Empty when there is no peer.
std::string ratios_table(std::span<const Result> results) {
  std::vector<std::vector<std::string>> lines;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& ours = results[i];
    if (!is_ours(ours) || ours.gflop_per_s == 0) continue;
    const Result* best = nullptr;
    for (std::size_t k = i + 1; k < results.size() && !is_ours(results[k]); ++k) {
      if (best == nullptr || results[k].median_ns < best->median_ns) best = &results[k];
    }
    lines.push_back({ours.shape, ours.dtype, std::to_string(ours.threads),
                     number(ours.gflop_per_s, 1), fmt::format("{:.0f} %", ours.percent_of_fma),
                     best == nullptr ? "none" : best->implementation,
                     best == nullptr ? "" : number(best->gflop_per_s, 1),
                     best == nullptr ? "" : fmt::format("{:.2f}", best->ratio)});
  }
  if (lines.empty()) return {};
  constexpr Heading kHeadings[] = {{"shape", true},    {"dtype", true},   {"threads", false},
                                   {"GFLOP/s", false}, {"of FMA", false}, {"best peer", true},
                                   {"GFLOP/s", false}, {"ratio", false}};
  return "\nOurs and the fastest peer\n" + table_text(kHeadings, lines);
}

std::string heading(const bench::Session& session, const bench::Bench& bench,
                    std::span<const Result> results) {
  std::string text =
      fmt::format("{}: {}\n{}", bench.name, bench.doc, kernels::isa_name(kernels::active_isa()));
  if (!varies(results, &Result::threads)) {
    // A file of targets may set thread counts other than the session's.
    const bool arithmetic = !results.empty() && results.front().gflop_per_s != 0;
    const int threads = arithmetic ? results.front().threads : session.threads();
    text += fmt::format(", {} thread{}", threads, threads == 1 ? "" : "s");
  }
  text += "\n";
  for (const std::string& note : session.notes()) text += note + "\n";
  return text;
}

std::string notes(const bench::Session& session, std::span<const Result> results) {
  constexpr double kQuiet = 50;
  std::string text = "ratio: the peer's time / ours\n";
  const auto about_memory = [](const Result& r) { return r.percent_of_stream != 0; };
  if (std::any_of(results.begin(), results.end(), about_memory)) {
    text +=
        "memory-bound: GB/s as a share of what a bare loop over as much memory reached in this "
        "run\n";
  }
  const auto about_arithmetic = [](const Result& r) { return r.gflop_per_s != 0; };
  if (std::any_of(results.begin(), results.end(), about_arithmetic)) {
    text +=
        "of FMA: GFLOP/s as a share of what a bare loop of multiply-adds reached between the turns "
        "of the row\n"
        "error: the greatest |C - true C| / (|A| |B|), elementwise\n";
  }
  if (session.interruptions_per_s() > kQuiet) {
    text += fmt::format(
        "Disturbed: threads were taken off their CPU {:.0f} times a second. Measure again on a "
        "quiet "
        "machine.\n",
        session.interruptions_per_s());
  }
  return text;
}

Json or_null(double value) { return value == 0 ? Json(nullptr) : Json(value); }

Json to_json(const Result& r) {
  return {{"bench", r.bench},
          {"row", r.row},
          {"dtype", r.dtype},
          {"shape", r.shape},
          {"implementation", r.implementation},
          {"threads", r.threads},
          {"isa", r.isa},
          {"repeats", r.repeats},
          {"median_ns", r.median_ns},
          {"p10_ns", r.p10_ns},
          {"p90_ns", r.p90_ns},
          {"ns_per_element", or_null(r.ns_per_element)},
          {"gb_per_s", or_null(r.gb_per_s)},
          {"stream_gb_per_s", or_null(r.stream_gb_per_s)},
          {"percent_of_stream", or_null(r.percent_of_stream)},
          {"gflop_per_s", or_null(r.gflop_per_s)},
          {"fma_gflop_per_s", or_null(r.fma_gflop_per_s)},
          {"percent_of_fma", or_null(r.percent_of_fma)},
          {"max_error", r.max_error ? Json(*r.max_error) : Json(nullptr)},
          {"ratio", or_null(r.ratio)}};
}

/// The benchmarks by name. Throws ValueError for an unknown name, and for a benchmark that does not
/// take an option that was given.
std::vector<const bench::Bench*> find_benches(const BenchCommand& command) {
  std::vector<const bench::Bench*> chosen;
  for (const std::string& name : command.names) chosen.push_back(&bench::find_bench(name));
  for (const bench::Bench* bench : chosen) {
    for (const std::string& option : command.special) {
      if (std::find(bench->options.begin(), bench->options.end(), option) != bench->options.end()) {
        continue;
      }
      throw ValueError(fmt::format("bench: {} has no {}", bench->name, option));
    }
  }
  return chosen;
}

/// Copies the sizes from the command line, or from the file of targets, into the options.
void choose_products(const BenchCommand& command, const TargetFile& targets,
                     bench::Options& options) {
  if (command.dtype) options.dtype = bench::matmul_dtype(*command.dtype);
  for (const std::string& shape : command.shapes) {
    options.products.push_back({.dtype = options.dtype});
    bench::set_shape(options.products.back(), shape);
  }
  if (command.check_path.empty()) return;
  if (options.peers.empty()) options.peers = targets.peers;
  if (!options.sizes.empty() || !options.products.empty()) return;
  for (const Target& target : targets.rows) {
    const bool wanted = (!command.dtype || target.product.dtype == options.dtype) &&
                        (options.threads == 0 || target.product.threads == options.threads);
    if (wanted) options.products.push_back(target.product);
  }
  if (options.products.empty()) {
    throw ValueError(
        fmt::format("--check: '{}' has no row of that --dtype and --threads", command.check_path));
  }
}

/// Prints the verdicts and returns the exit status.
int report(const Checked& checked, const std::string& path, Output& out) {
  if (checked.run == 0) {
    throw ValueError(fmt::format("--check: '{}' has none of the rows that were run", path));
  }
  out.print("\nAgainst " + path + "\n" + checked.table);
  if (checked.failed == 0) return 0;
  complain(fmt::format("bench matmul: {} of {} rows fall below '{}'", checked.failed, checked.run,
                       path));
  return 1;
}

}  // namespace

int run_bench(BenchCommand command) {
  std::vector<const bench::Bench*> chosen;
  try {
    chosen = find_benches(command);
  } catch (const ValueError& error) {
    say(fmt::format("baregrad {}", error.what()));
    return 2;
  }
  const bool checking = !command.check_path.empty();
  const TargetFile targets = checking ? read_targets(command.check_path) : TargetFile{};
  choose_products(command, targets, command.options);
  JsonFile json(command.json_path);
  Output out;
  Progress progress;
  bench::Session session(command.options,
                         [&progress](const std::string& text) { progress.show(text); });
  for (const bench::Bench* bench : chosen) {
    const std::size_t before = session.results().size();
    session.begin(std::string(bench->name));
    bench->run(session);
    progress.clear();
    const std::span<const Result> results = std::span(session.results()).subspan(before);
    for (const Result& result : results) json.add(to_json(result));
    if (bench != chosen.front()) out.print("\n");
    out.print(heading(session, *bench, results));
    out.print(results_table(results));
    out.print(notes(session, results));
    out.print(ratios_table(results));
    if (out.closed() && !json.wanted() && !checking) break;
  }
  json.save();
  const int status =
      checking ? report(check_targets(targets.rows, session.results()), command.check_path, out)
               : 0;
  out.finish();
  return status;
}

}  // namespace baregrad::cli

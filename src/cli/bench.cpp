// `baregrad bench`: a table for people, one JSON object per measurement for programs.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "baregrad/error.h"
#include "bench/benches.h"
#include "cli/commands.h"
#include "cli/json_file.h"
#include "cli/output.h"
#include "kernels/table.h"

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
    {"ratio", false,
     [](const Result& r) {
       return r.implementation == bench::kOurs || r.ratio == 0 ? ""
                                                               : fmt::format("{:.2f}", r.ratio);
     }},
};

/// Not bytes: there is a µ among them.
std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

/// Columns as wide as their widest cell; one that is empty throughout is left out.
std::string table(std::span<const Result> results) {
  std::vector<std::string> lines(results.size() + 1);
  for (const Column& column : kColumns) {
    std::vector<std::string> cells;
    for (const Result& result : results) cells.push_back(column.cell(result));
    // A peer stands under ours; what they share is not said twice.
    if (&column < &kColumns[2]) {
      for (std::size_t i = 0; i < cells.size(); ++i) {
        if (results[i].implementation != bench::kOurs) cells[i].clear();
      }
    }
    if (std::all_of(cells.begin(), cells.end(), [](const auto& c) { return c.empty(); })) continue;
    cells.insert(cells.begin(), std::string(column.title));
    std::size_t width = 0;
    for (const std::string& cell : cells) width = std::max(width, characters(cell));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      lines[i] += column.left ? fmt::format("{:<{}}  ", cells[i], width)
                              : fmt::format("{:>{}}  ", cells[i], width);
    }
  }
  std::string text;
  for (const std::string& line : lines) {
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string heading(const bench::Session& session, const bench::Bench& bench) {
  return fmt::format("{}: {}\n{}, {} thread{}\n", bench.name, bench.doc,
                     kernels::isa_name(kernels::active_isa()), session.threads(),
                     session.threads() == 1 ? "" : "s");
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
          {"ratio", or_null(r.ratio)}};
}

}  // namespace

int run_bench(const std::vector<std::string>& names, const bench::Options& options,
              const std::string& json_path) {
  std::vector<const bench::Bench*> chosen;
  try {
    for (const std::string& name : names) chosen.push_back(&bench::find_bench(name));
  } catch (const ValueError& error) {
    fmt::print(stderr, "baregrad {}\n", error.what());
    return 2;
  }
  JsonFile json(json_path);
  Output out;
  Progress progress;
  bench::Session session(options, [&progress](const std::string& text) { progress.show(text); });
  for (const bench::Bench* bench : chosen) {
    const std::size_t before = session.results().size();
    session.begin(std::string(bench->name));
    bench->run(session);
    progress.clear();
    const std::span<const Result> results = std::span(session.results()).subspan(before);
    for (const Result& result : results) json.add(to_json(result));
    if (bench != chosen.front()) out.print("\n");
    out.print(heading(session, *bench));
    out.print(table(results));
    out.print(notes(session, results));
    if (out.closed() && !json.wanted()) break;
  }
  json.save();
  return 0;
}

}  // namespace baregrad::cli

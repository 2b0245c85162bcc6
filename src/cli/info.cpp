// `baregrad info`: the machine, the settings in use, and the measured ceilings.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "backends/cpu/table.h"
#include "baregrad/allocator.h"
#include "baregrad/parallel.h"
#include "bench/ceilings.h"
#include "bench/machine.h"
#include "cli/commands.h"
#include "cli/json_file.h"
#include "cli/output.h"

#ifndef BAREGRAD_VERSION
#define BAREGRAD_VERSION "unversioned"
#endif

namespace baregrad::cli {
namespace {

using bench::Cache;
using bench::FmaCeiling;
using bench::Machine;
using bench::MeasuredCeilings;
using bench::StreamCeiling;

std::string line(std::string_view label, std::string_view value) {
  return fmt::format("  {:<14}{}\n", label, value);
}

std::string cpus_text(const Machine& machine) {
  const std::string cores =
      machine.physical_cores > 0 ? fmt::format("{} cores, ", machine.physical_cores) : "";
  return fmt::format("{}{} hardware threads, {} usable by this process", cores,
                     machine.logical_cpus, machine.usable_cpus);
}

std::string isas_text() {
  std::string names;
  for (const kernels::Isa isa : kernels::available_isas()) {
    names += (names.empty() ? "" : ", ") + std::string(kernels::isa_name(isa));
  }
  return fmt::format("{} (this CPU runs {})", kernels::isa_name(kernels::active_isa()), names);
}

std::string cache_text(const Cache& cache) {
  std::string size = bytes_text(cache.bytes);
  if (cache.shared_by <= 1) return size;
  return fmt::format("{}, shared by {} hardware threads", size, cache.shared_by);
}

std::string cache_label(const Cache& cache) {
  const std::string kind = cache.type == "data" ? "d" : cache.type == "instruction" ? "i" : "";
  return fmt::format("L{}{} cache", cache.level, kind);
}

std::string machine_text(const Machine& machine) {
  std::string text = version_text() + "\n";
  text += line("built with", bench::describe_build());
  text += line("CPU", machine.cpu);
  text += line("", cpus_text(machine));
  text += line("ISA in use", isas_text());
  for (const Cache& cache : machine.caches) text += line(cache_label(cache), cache_text(cache));
  if (machine.caches.empty())
    text += line("caches", "the system does not say; usual sizes assumed");
  text += line("memory", bytes_text(machine.memory_bytes));
  text += line("threads", std::to_string(get_num_threads()));
  text += line("allocator", current_allocator().name());
  return text;
}

/// The measurements of one label side by side, one column per number of threads.
std::string ceiling_line(const std::string& label, const std::vector<double>& values,
                         std::string_view unit) {
  std::string text = fmt::format("  {:<34}", label);
  for (const double value : values) {
    text += fmt::format("{:>9.{}f} {:<9}", value, value < 99.95 ? 1 : 0, unit);
  }
  return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
}

std::string ceilings_text(const MeasuredCeilings& ceilings, int threads) {
  std::string text =
      fmt::format("\n{:<36}{:>9} {:<9}", "What it can do, measured now", "1", "thread");
  if (threads > 1) text += fmt::format("{:>9} {}", threads, "threads");
  text = text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  for (const FmaCeiling& first : ceilings.fma) {
    if (first.threads != 1) continue;
    std::vector<double> values;
    for (const FmaCeiling& fma : ceilings.fma) {
      if (fma.bits == first.bits) values.push_back(fma.gflop_per_s);
    }
    text += ceiling_line(fmt::format("multiply-add, float{}", first.bits), values, "GFLOP/s");
  }
  for (const StreamCeiling& first : ceilings.streams) {
    if (first.threads != 1) continue;
    std::vector<double> values;
    for (const StreamCeiling& stream : ceilings.streams) {
      if (stream.stream == first.stream && stream.level == first.level) {
        values.push_back(stream.gb_per_s);
      }
    }
    text += ceiling_line(fmt::format("{} in {} ({})", bench::stream_name(first.stream), first.level,
                                     bytes_text(first.bytes)),
                         values, "GB/s");
  }
  return text;
}

Json to_json(const Machine& machine, const MeasuredCeilings& ceilings) {
  Json isas = Json::array();
  for (const kernels::Isa isa : kernels::available_isas()) isas.push_back(kernels::isa_name(isa));
  Json caches = Json::array();
  for (const Cache& cache : machine.caches) {
    caches.push_back({{"level", cache.level},
                      {"type", cache.type},
                      {"bytes", cache.bytes},
                      {"shared_by", cache.shared_by}});
  }
  Json fma = Json::array();
  for (const FmaCeiling& f : ceilings.fma) {
    fma.push_back({{"dtype", fmt::format("float{}", f.bits)},
                   {"threads", f.threads},
                   {"gflop_per_s", f.gflop_per_s}});
  }
  Json streams = Json::array();
  for (const StreamCeiling& s : ceilings.streams) {
    streams.push_back({{"loop", bench::stream_name(s.stream)},
                       {"level", s.level},
                       {"bytes", s.bytes},
                       {"threads", s.threads},
                       {"gb_per_s", s.gb_per_s}});
  }
  return {{"version", BAREGRAD_VERSION},
          {"build", bench::describe_build()},
          {"cpu", machine.cpu},
          {"physical_cores", machine.physical_cores},
          {"logical_cpus", machine.logical_cpus},
          {"usable_cpus", machine.usable_cpus},
          {"isa", kernels::isa_name(kernels::active_isa())},
          {"isas", isas},
          {"caches", caches},
          {"memory_bytes", machine.memory_bytes},
          {"threads", get_num_threads()},
          {"allocator", current_allocator().name()},
          {"fma", fma},
          {"streams", streams}};
}

}  // namespace

std::string version_text() { return "baregrad " BAREGRAD_VERSION; }

int run_info(const std::string& json_path) {
  JsonFile json(json_path);
  Output out;
  const Machine machine = bench::describe_machine();
  out.print(machine_text(machine));
  if (out.closed() && !json.wanted()) {
    out.finish();
    return 0;
  }
  Progress progress;
  const int threads = get_num_threads();
  const MeasuredCeilings ceilings = bench::measure_ceilings(
      machine, threads, [&progress](const std::string& text) { progress.show(text); });
  progress.clear();
  json.add(to_json(machine, ceilings));
  json.save();
  out.print(ceilings_text(ceilings, threads));
  out.finish();
  return 0;
}

}  // namespace baregrad::cli

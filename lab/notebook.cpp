// A part's records are appended in one write, so that an interrupted run never leaves half of one.
#include "lab/notebook.h"

#include <chrono>
#include <ctime>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backends/cpu/table.h"
#include "baregrad/error.h"
#include "data/source.h"
#include "io/atomic_file.h"
#include "lab/fingerprint.h"

namespace baregrad::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFormat = 1;

Json describe(const bench::Machine& machine) {
  Json caches = Json::array();
  for (const bench::Cache& cache : machine.caches) {
    caches.push_back({{"level", cache.level},
                      {"type", cache.type},
                      {"bytes", cache.bytes},
                      {"shared_by", cache.shared_by}});
  }
  return {{"cpu", machine.cpu},
          {"logical_cpus", machine.logical_cpus},
          {"physical_cores", machine.physical_cores},
          {"usable_cpus", machine.usable_cpus},
          {"memory_bytes", machine.memory_bytes},
          {"caches", std::move(caches)}};
}

std::string date_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

/// Of the running program. Computed once, as the file has megabytes.
const std::string& own_fingerprint() {
  static const std::string known = fingerprint("/proc/self/exe");
  return known;
}

std::string absent_key(const std::string& what, const std::string& why) {
  return what + "\n" + why;
}

/// The record of a line; empty if the line was cut off.
std::optional<Json> parse_line(std::string_view line) {
  Json record = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!record.is_object() || !record.contains("kind")) return std::nullopt;
  return record;
}

}  // namespace

Notebook::Notebook(std::string_view name, std::string_view question, std::string_view method,
                   const Options& options, Tell progress, Tell say)
    : name_(name),
      options_(options),
      machine_(bench::describe_machine()),
      progress_(std::move(progress)),
      say_(std::move(say)),
      path_(file(".jsonl")) {
  threads_ = options.threads > 0 ? options.threads : machine_.usable_cpus;
  io::make_folder(options.out, "lab");
  open_or_resume({{"kind", "header"},
                  {"format", kFormat},
                  {"experiment", name},
                  {"question", question},
                  {"method", method},
                  {"command", fmt::format("baregrad lab {}{}", name, quick() ? " --quick" : "")},
                  {"quick", quick()},
                  {"threads", threads_},
                  {"seed", seed()},
                  {"isa", kernels::isa_name(kernels::active_isa())},
                  {"build", bench::describe_build()},
                  {"program", own_fingerprint()},
                  {"machine", describe(machine_)},
                  {"date", date_text()}});
}

std::string Notebook::file(std::string_view suffix) const {
  return fmt::format("{}/{}{}", options_.out, name_, suffix);
}

void Notebook::check_header(const Json& found, const Json& header) const {
  for (const char* key : {"format", "experiment", "quick", "threads", "seed", "isa", "machine"}) {
    if (found.value(key, Json()) == header[key]) continue;
    throw ValueError(
        fmt::format("lab: '{}' holds a run with another {} ({}, now {}): choose another --out, "
                    "or remove it",
                    path_, key, found.value(key, Json()).dump(), header[key].dump()));
  }
}

void Notebook::remember(const Json& record) {
  const std::string kind = record.value("kind", "");
  if (kind == "absent") {
    absent_.insert(absent_key(record.value("what", ""), record.value("why", "")));
  } else if (kind == "part") {
    done_.insert(record.value("key", ""));
    earlier_seconds_ += record.value("seconds", 0.0);
  } else if (kind == "end") {
    finished_ = true;
  }
}

void Notebook::begin_afresh() {
  say_(fmt::format("{}: another build of baregrad began '{}': begun afresh", name_, path_));
  done_.clear();
  absent_.clear();
  earlier_seconds_ = 0;
}

void Notebook::open_or_resume(const Json& header) {
  std::string text;
  {
    // Only a regular file: opening a pipe would block.
    std::error_code error;
    if (std::filesystem::exists(path_, error)) {
      const auto bytes = data::read_all(*data::open_file(path_, "lab", 0));
      text.assign(bytes.begin(), bytes.end());
    }
  }
  const auto refuse = [&] {
    throw ValueError(
        fmt::format("lab: '{}' is not a file of `baregrad lab`: choose another --out", path_));
  };
  // A truncated header is written again; a file of another program is refused.
  constexpr std::string_view kStart = "{\"kind\":\"header\"";
  const bool whole_line = text.find('\n') != std::string::npos;
  if (!whole_line && !text.starts_with(kStart) && !kStart.starts_with(text)) refuse();
  std::size_t whole = 0;      // bytes up to the end of the last finished part
  std::vector<Json> of_part;  // records of an unfinished part
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) break;
    std::optional<Json> record = parse_line(std::string_view(text).substr(at, end - at));
    if (at == 0 && (!record || record->value("kind", Json()) != "header")) refuse();
    if (!record) break;
    if (at == 0) {
      check_header(*record, header);
      other_build_ = record->value("program", "") != header.value("program", "");
    }
    at = end + 1;
    const std::string kind = record->value("kind", "");
    of_part.push_back(std::move(*record));
    if (kind != "header" && kind != "part" && kind != "end") continue;
    for (const Json& each : of_part) remember(each);
    of_part.clear();
    whole = at;
  }
  if (finished_) return;
  if (other_build_) {
    begin_afresh();
    whole = 0;
  }
  file_ = std::make_unique<io::AppendFile>(path_, "lab", /*fresh=*/false);
  file_->lock();
  if (file_->size() != text.size()) {
    throw IoError(fmt::format("lab: '{}' has just been written by another process", path_));
  }
  file_->cut(whole);
  if (whole == 0) file_->append(header.dump() + "\n");
}

void Notebook::part(const std::string& key, const std::function<void()>& body) {
  if (finished_ || done_.contains(key)) return;
  progress(key);
  pending_.clear();
  const Clock::time_point start = Clock::now();
  body();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  write({{"kind", "part"}, {"seconds", seconds}, {"key", key}});
  file_->append(pending_);
  pending_.clear();
  done_.insert(key);
}

void Notebook::add(std::string_view kind, const Json& fields) {
  Json record = {{"kind", kind}};
  record.update(fields);
  write(record);
}

void Notebook::write(const Json& record) { pending_ += record.dump() + "\n"; }

void Notebook::note(const std::string& text) { add("note", {{"text", text}}); }

void Notebook::absent(const std::string& what, const std::string& why) {
  if (!absent_.insert(absent_key(what, why)).second) return;
  add("absent", {{"what", what}, {"why", why}});
  say_(fmt::format("{}: {} is left out: {}", name_, what, why));
}

void Notebook::progress(const std::string& text) const {
  if (progress_) progress_(name_ + ": " + text);
}

void Notebook::finish(double seconds) {
  file_->append(Json({{"kind", "end"}, {"seconds", earlier_seconds_ + seconds}}).dump() + "\n");
  file_->flush();
  finished_ = true;
}

}  // namespace baregrad::lab

// A part's records are appended in one write, so that an interrupted run never leaves half of one.
#include "lab/notebook.h"

#include <ctime>
#include <fstream>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "baregrad/error.h"
#include "io/atomic_file.h"
#include "kernels/table.h"

namespace baregrad::lab {
namespace {

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

/// What a line says, or nothing where it was cut off in the midst.
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
                  {"machine", describe(machine_)},
                  {"date", date_text()}});
}

std::string Notebook::file(std::string_view suffix) const {
  return fmt::format("{}/{}{}", options_.out, name_, suffix);
}

void Notebook::open_or_resume(const Json& header) {
  std::string text;
  {
    std::ifstream in(path_, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::size_t whole = 0;  // bytes up to the end of the last part that is done
  std::set<std::string> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) break;
    const std::optional<Json> record = parse_line(std::string_view(text).substr(at, end - at));
    if (!record && at == 0) {
      throw ValueError(
          fmt::format("lab: '{}' is not a file of `baregrad lab`: choose another --out", path_));
    }
    if (!record) break;
    const std::string kind = record->value("kind", "");
    if (at == 0) {
      for (const char* key :
           {"format", "experiment", "quick", "threads", "seed", "isa", "machine"}) {
        if (record->value(key, Json()) == header[key]) continue;
        throw ValueError(
            fmt::format("lab: '{}' holds a run with another {} ({}, now {}): choose another --out, "
                        "or remove it",
                        path_, key, record->value(key, Json()).dump(), header[key].dump()));
      }
    }
    at = end + 1;
    if (kind == "part") parts.insert(record->value("key", ""));
    if (kind == "end") finished_ = true;
    if (kind == "header" || kind == "part" || kind == "end") whole = at;
  }
  if (finished_) return;
  file_ = std::make_unique<io::AppendFile>(path_, "lab", /*fresh=*/false);
  file_->cut(whole);
  done_ = std::move(parts);
  if (whole == 0) file_->append(header.dump() + "\n");
}

void Notebook::part(const std::string& key, const std::function<void()>& body) {
  if (finished_ || done_.contains(key)) return;
  progress(key);
  pending_.clear();
  body();
  write({{"kind", "part"}, {"key", key}});
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
  add("absent", {{"what", what}, {"why", why}});
  say_(fmt::format("{}: {} is left out: {}", name_, what, why));
}

void Notebook::progress(const std::string& text) const {
  if (progress_) progress_(name_ + ": " + text);
}

void Notebook::finish(double seconds) {
  file_->append(Json({{"kind", "end"}, {"seconds", seconds}}).dump() + "\n");
  file_->flush();
  finished_ = true;
}

}  // namespace baregrad::lab

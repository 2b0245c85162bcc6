// Reads files of one number each.
#include "lab/energy/rapl.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "baregrad/error.h"

namespace baregrad::lab {
namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> read_number(const std::string& path) {
  std::ifstream in(path);
  std::uint64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

std::string read_word(const fs::path& path) {
  std::ifstream in(path);
  std::string word;
  in >> word;
  return word;
}

/// A package includes all of its cores and caches. "psys" and the mmio zones would count them
/// again; "core" and "uncore" are parts of them.
bool counts(const std::string& folder, const std::string& name) {
  return folder.starts_with("intel-rapl:") && (name.starts_with("package") || name == "dram");
}

}  // namespace

std::uint64_t microjoules_between(std::uint64_t before, std::uint64_t after, std::uint64_t range) {
  return after >= before ? after - before : after + range - before;
}

std::optional<Rapl> Rapl::open(const std::string& folder, std::string& why) {
  std::error_code error;
  Rapl rapl;
  std::string locked;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = read_word(at->path() / "name");
    if (!counts(at->path().filename().string(), name)) continue;
    const std::string file = (at->path() / "energy_uj").string();
    const std::optional<std::uint64_t> range =
        read_number((at->path() / "max_energy_range_uj").string());
    if (!read_number(file) || !range) {
      locked = file;
      continue;
    }
    rapl.zones_.push_back({name, file, *range});
  }
  std::sort(rapl.zones_.begin(), rapl.zones_.end(),
            [](const Zone& x, const Zone& y) { return x.file < y.file; });
  const bool has_package =
      std::any_of(rapl.zones_.begin(), rapl.zones_.end(),
                  [](const Zone& zone) { return zone.name.starts_with("package"); });
  if (has_package) return rapl;
  if (!locked.empty()) {
    why = "'" + locked + "' may not be read by this user: most systems keep it to root";
  } else if (error) {
    why = "this system has no '" + folder + "' (" + error.message() +
          "): virtual machines seldom show the counters";
  } else {
    why = "'" + folder + "' has no counter of a processor";
  }
  return std::nullopt;
}

Rapl::Reading Rapl::read() const {
  Reading reading;
  for (const Zone& zone : zones_) {
    const std::optional<std::uint64_t> value = read_number(zone.file);
    if (!value) throw IoError("lab: cannot read '" + zone.file + "' any more");
    reading.push_back(*value);
  }
  return reading;
}

double Rapl::joules(const Reading& before, const Reading& after) const {
  double microjoules = 0;
  for (std::size_t i = 0; i < zones_.size(); ++i) {
    microjoules +=
        static_cast<double>(microjoules_between(before[i], after[i], zones_[i].range_uj));
  }
  return microjoules / 1e6;
}

}  // namespace baregrad::lab

// RAPL: the processor's energy counters, as Linux shows them in /sys/class/powercap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace baregrad::lab {

/// The difference of two readings of a counter that wraps to 0 beyond `range`.
std::uint64_t microjoules_between(std::uint64_t before, std::uint64_t after, std::uint64_t range);

class Rapl {
 public:
  struct Zone {
    std::string name;  ///< "package-0", "dram"
    std::string file;  ///< energy_uj
    std::uint64_t range_uj = 0;
  };
  /// Microjoules of each zone, in their order.
  using Reading = std::vector<std::uint64_t>;

  static constexpr const char* kFolder = "/sys/class/powercap";
  /// Empty, with the reason in `why`, where there are no readable counters. Tests pass another
  /// `folder`.
  static std::optional<Rapl> open(const std::string& folder, std::string& why);

  /// Zones that do not overlap: processor packages, and their memory where it is counted apart.
  const std::vector<Zone>& zones() const noexcept { return zones_; }
  /// Throws IoError when a counter cannot be read any more.
  Reading read() const;
  /// The sum over all zones. Valid if no counter wrapped twice in between.
  double joules(const Reading& before, const Reading& after) const;

 private:
  std::vector<Zone> zones_;
};

}  // namespace baregrad::lab

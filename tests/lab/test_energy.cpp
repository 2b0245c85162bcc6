// RAPL, with a folder made by the test.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "lab/energy/energy.h"
#include "lab/energy/rapl.h"
#include "tests/io/temporary_folder.h"

namespace baregrad::lab {
namespace {

/// Linux's layout: one folder per zone, one number per file.
class Powercap {
 public:
  void add(const std::string& zone, const std::string& name, std::uint64_t energy_uj,
           std::uint64_t range_uj) const {
    std::filesystem::create_directories(file(zone));
    write(zone + "/name", name);
    write(zone + "/max_energy_range_uj", std::to_string(range_uj));
    set(zone, energy_uj);
  }
  /// By renaming: a reader must never see a partial number.
  void set(const std::string& zone, std::uint64_t energy_uj) const {
    write(zone + "/next", std::to_string(energy_uj));
    std::filesystem::rename(file(zone + "/next"), file(zone + "/energy_uj"));
  }
  std::string path() const { return file(""); }
  std::string file(const std::string& name) const { return folder_.file(name); }

 private:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text << "\n";
  }
  test::TemporaryFolder folder_;
};

TEST(Rapl, DifferencesAcrossTheEndOfTheRange) {
  EXPECT_EQ(microjoules_between(100, 350, 1000), 250U);
  EXPECT_EQ(microjoules_between(100, 100, 1000), 0U);
  EXPECT_EQ(microjoules_between(900, 50, 1000), 150U);
}

TEST(Rapl, AddsPackagesAndMemoryAndNothingTwice) {
  const Powercap powercap;
  powercap.add("intel-rapl:0", "package-0", 1'000'000, 262'143'328'850);
  powercap.add("intel-rapl:0:0", "core", 500'000, 262'143'328'850);
  powercap.add("intel-rapl:0:1", "dram", 9'000'000, 10'000'000);
  powercap.add("intel-rapl:1", "package-1", 0, 262'143'328'850);
  powercap.add("intel-rapl:2", "psys", 7, 262'143'328'850);
  powercap.add("intel-rapl-mmio:0", "package-0", 5, 262'143'328'850);
  std::string why;
  const std::optional<Rapl> rapl = Rapl::open(powercap.path(), why);
  ASSERT_TRUE(rapl) << why;
  std::vector<std::string> names;
  for (const Rapl::Zone& zone : rapl->zones()) names.push_back(zone.name);
  EXPECT_EQ(names, (std::vector<std::string>{"package-0", "dram", "package-1"}));
  const Rapl::Reading before = rapl->read();
  powercap.set("intel-rapl:0", 3'500'000);
  powercap.set("intel-rapl:0:0", 400'000'000);
  powercap.set("intel-rapl:0:1", 500'000);  // wrapped around
  powercap.set("intel-rapl:1", 250'000);
  powercap.set("intel-rapl:2", 800'000'000);
  powercap.set("intel-rapl-mmio:0", 900'000'000);
  EXPECT_DOUBLE_EQ(rapl->joules(before, rapl->read()), 2.5 + 1.5 + 0.25);
}

TEST(Rapl, WhyThereIsNone) {
  std::string why;
  EXPECT_FALSE(Rapl::open("/nowhere", why));
  EXPECT_NE(why.find("this system has no '/nowhere'"), std::string::npos) << why;
  const Powercap empty;
  EXPECT_FALSE(Rapl::open(empty.path(), why));
  EXPECT_NE(why.find("has no counter of a processor"), std::string::npos) << why;
  // Memory alone would leave out the processor.
  const Powercap memory;
  memory.add("intel-rapl:0:1", "dram", 0, 1000);
  EXPECT_FALSE(Rapl::open(memory.path(), why));
}

TEST(Rapl, ACounterThatMayNotBeReadIsNamed) {
  const Powercap powercap;
  powercap.add("intel-rapl:0", "package-0", 0, 1000);
  // Root may read every file, so an empty file stands for an unreadable one.
  std::ofstream(powercap.file("intel-rapl:0/energy_uj"), std::ios::trunc).close();
  ::chmod(powercap.file("intel-rapl:0/energy_uj").c_str(), 0);
  std::string why;
  EXPECT_FALSE(Rapl::open(powercap.path(), why));
  EXPECT_NE(why.find("intel-rapl:0/energy_uj' may not be read"), std::string::npos) << why;
}

TEST(Energy, HurryingPaysWhenIdlingIsCheap) {
  // 10 s at 20 W, or 4 s at 40 W and 6 s at 5 W.
  const Race cheap = race_to_sleep(200, 10, 160, 4, 5);
  EXPECT_DOUBLE_EQ(cheap.slow_joules, 200);
  EXPECT_DOUBLE_EQ(cheap.fast_joules, 190);
  EXPECT_DOUBLE_EQ(race_to_sleep(200, 10, 160, 4, 8).fast_joules, 208);
}

/// Records of an experiment, by kind.
std::vector<Json> records_of(const std::string& file, const std::string& kind) {
  std::vector<Json> found;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    Json record = Json::parse(line);
    if (record["kind"] == kind) found.push_back(std::move(record));
  }
  return found;
}

std::unique_ptr<Notebook> quick_notebook(const std::string& out, std::vector<std::string>& said) {
  return std::make_unique<Notebook>(
      "energy", "question", "method", Options{.out = out, .quick = true, .threads = 2},
      [](const std::string&) {}, [&said](const std::string& text) { said.push_back(text); });
}

TEST(Energy, WithoutCountersThereIsOneLineAndNoNumber) {
  const test::TemporaryFolder out;
  std::vector<std::string> said;
  measure_energy(*quick_notebook(out.file(""), said), "/nowhere");
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("energy is left out: this system has no '/nowhere'"), std::string::npos);
  EXPECT_EQ(records_of(out.file("energy.jsonl"), "absent").size(), 1U);
  for (const char* kind : {"idle", "energy", "race", "counters"}) {
    EXPECT_TRUE(records_of(out.file("energy.jsonl"), kind).empty()) << kind;
  }
}

TEST(Energy, ACounterThatRunsAtConstantPowerIsMeasuredAsSuch) {
  // 10 W, by a counter that wraps during the measurement.
  constexpr double kWatts = 10;
  constexpr std::uint64_t kRange = 50'000'000;
  constexpr std::uint64_t kStart = kRange - 5'000'000;
  const Powercap powercap;
  powercap.add("intel-rapl:0", "package-0", kStart, kRange);
  std::atomic<bool> stop = false;
  const auto start = std::chrono::steady_clock::now();
  std::thread meter([&] {
    while (!stop) {
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      const auto microjoules = static_cast<std::uint64_t>(passed.count() * kWatts * 1e6);
      powercap.set("intel-rapl:0", (kStart + microjoules) % kRange);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  const test::TemporaryFolder out;
  std::vector<std::string> said;
  measure_energy(*quick_notebook(out.file(""), said), powercap.path());
  stop = true;
  meter.join();
  EXPECT_TRUE(said.empty());
  EXPECT_EQ(records_of(out.file("energy.jsonl"), "idle").size(), 1U);
  const std::vector<Json> energies = records_of(out.file("energy.jsonl"), "energy");
  EXPECT_EQ(energies.size(), 4U);  // a product and a step, each on one thread and on two
  for (const Json& record : energies) {
    const double watts =
        record.value("joules_per_call", 0.0) / record.value("seconds_per_call", 1.0);
    // On a busy machine the reading is late: this tests units and the wrap, not accuracy.
    EXPECT_GT(watts, kWatts / 5) << record.dump();
    EXPECT_LT(watts, kWatts * 5) << record.dump();
    EXPECT_LE(record.value("least_joules_per_call", 0.0), record.value("joules_per_call", 0.0));
    EXPECT_GE(record.value("most_joules_per_call", 0.0), record.value("joules_per_call", 0.0));
  }
}

}  // namespace
}  // namespace baregrad::lab

// Counters: Callgrind's output, its failures, and the kernel's counters.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include <sys/mman.h>

#include <gtest/gtest.h>

#include "baregrad/error.h"
#include "lab/counting/counters.h"
#include "tests/io/temporary_folder.h"
#include "tests/message_of.h"

namespace baregrad::lab {
namespace {

constexpr const char* kFile =
    "# callgrind format\n"
    "version: 1\n"
    "part: 1\n"
    "\n"
    "desc: D1 cache: 32768 B, 64 B, 8-way associative\n"
    "events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim\n"
    "summary: 1000 300 200 7 30 20 6 3 2 100 10 5 1\n"
    "\n"
    "fn=(1) kernel\n"
    "0 1000 300 200 7 30 20 6 3 2 100 10 5 1\n"
    "\n"
    "totals: 1000 300 200 8 30 20 6 3 2 100 10 5 1\n";

std::string with_summary(const std::string& numbers) {
  return "events: Ir Dr Dw\nsummary:" + numbers;
}

TEST(Callgrind, SumsOfAFile) {
  const Counts counts = callgrind::parse(kFile);
  EXPECT_EQ(counts.instructions, 1000);
  EXPECT_EQ(counts.loads, 300);
  EXPECT_EQ(counts.stores, 200);
  EXPECT_EQ(counts.l1_load_misses, 30);
  EXPECT_EQ(counts.l1_store_misses, 20);
  EXPECT_EQ(counts.ll_load_misses, 3);
  EXPECT_EQ(counts.ll_store_misses, 2);
  EXPECT_EQ(counts.l1i_misses, 7);
  EXPECT_EQ(counts.branches, 105);
  EXPECT_EQ(counts.mispredictions, 11);
}

TEST(Callgrind, ZerosAtTheEndOfALineAreLeftOut) {
  const Counts counts = callgrind::parse(with_summary(" 12 3\n"));
  EXPECT_EQ(counts.instructions, 12);
  EXPECT_EQ(counts.loads, 3);
  EXPECT_EQ(counts.stores, 0);
  EXPECT_FALSE(counts.branches.has_value());  // was not simulated
}

TEST(Callgrind, FilesThatAreNotWhole) {
  const auto message = [](const std::string& text) {
    return message_of<ValueError>([&] { callgrind::parse(text); });
  };
  EXPECT_NE(message("").find("cut short"), std::string::npos);
  EXPECT_NE(message("events: Ir Dr\n").find("cut short"), std::string::npos);
  EXPECT_NE(message(with_summary(" 12 3")).find("cut short"), std::string::npos);
  EXPECT_NE(message(with_summary(" 1 2 3 4\n")).find("3 events but 4 sums"), std::string::npos);
  EXPECT_NE(message(with_summary(" 1 x 3\n")).find("'x' where a count"), std::string::npos);
  EXPECT_NE(message(with_summary(" 1 99999999999999999999 3\n")).find("where a count"),
            std::string::npos);
}

TEST(Callgrind, CachesHavePowersOfTwoOfSets) {
  EXPECT_EQ(callgrind::nearest_cache(32 << 10).option(), "32768,8,64");
  EXPECT_EQ(callgrind::nearest_cache(48 << 10).option(), "49152,12,64");
  EXPECT_EQ(callgrind::nearest_cache(33 << 20).option(), "34603008,33,64");
  // 129 x 2^k lines: too many ways, so the next smaller power of two is used.
  EXPECT_EQ(callgrind::nearest_cache(129 << 16).option(), "8388608,8,64");
  for (std::size_t bytes = 1; bytes < (1UL << 22); bytes = bytes * 3 / 2 + 1) {
    const callgrind::Cache cache = callgrind::nearest_cache(bytes);
    const std::size_t sets = cache.bytes / 64 / static_cast<std::size_t>(cache.ways);
    EXPECT_EQ(sets * static_cast<std::size_t>(cache.ways) * 64, cache.bytes) << bytes;
    EXPECT_EQ(sets & (sets - 1), 0U) << bytes;
    EXPECT_GE(sets, 2U) << bytes;
    EXPECT_LE(cache.bytes, std::max<std::size_t>(bytes, 1024)) << bytes;
  }
}

TEST(Callgrind, TheLastLevelIsTheLargest) {
  bench::Machine machine{};
  machine.caches = {{1, "data", 48 << 10, 1},
                    {1, "instruction", 64 << 10, 1},
                    {2, "unified", 2 << 20, 1},
                    {3, "unified", 24 << 20, 8}};
  EXPECT_EQ(callgrind::choose_caches(machine).data.bytes, 48U << 10);
  EXPECT_EQ(callgrind::choose_caches(machine).instructions.bytes, 64U << 10);
  EXPECT_EQ(callgrind::choose_caches(machine).last.bytes, 24U << 20);
  machine.caches.pop_back();
  EXPECT_EQ(callgrind::choose_caches(machine).last.bytes, 2U << 20);
}

TEST(Trials, ArgumentsThereAndBack) {
  const std::vector<TrialRun> runs = {{"read", 1000, 1}, {"rung:naive", 20, 0}};
  const std::vector<TrialRun> back = from_arguments(to_arguments(runs));
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[1].name, "rung:naive");
  EXPECT_EQ(back[1].size, 20);
  EXPECT_EQ(back[1].warm_ups, 0);
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"read", "1"}, {"read", "0", "1"}, {"read", "1x", "1"}}) {
    EXPECT_TRUE(message_of<ValueError>([&] { from_arguments(wrong); }).starts_with("lab-trial: "));
  }
  EXPECT_NE(message_of<ValueError>([] { prepare_trial("sleep:1", 1); }).find("there are nothing"),
            std::string::npos);
}

/// PATH contains only the script `valgrind`, or nothing.
class FakeValgrind : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::getenv("PATH");
    ::setenv("PATH", folder_.file("").c_str(), 1);
  }
  void TearDown() override { ::setenv("PATH", path_.c_str(), 1); }

  /// `body` may use $out, the prefix of the file names, and $trials, their number.
  void install(const std::string& body) {
    const std::string script = folder_.file("valgrind");
    std::ofstream(script) << "#!/bin/sh\nfor word; do case $word in --callgrind-out-file=*) "
                             "out=${word#*=};; lab-trial) shift; break;; esac; shift; done\n"
                             "trials=$(($# / 3))\n"
                          << body << "\n";
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  }
  std::vector<Counted> count(std::size_t trials) const {
    const std::vector<TrialRun> runs(trials, TrialRun{"nothing", 1, 1});
    return callgrind::count(runs, callgrind::choose_caches({}));
  }

 private:
  test::TemporaryFolder folder_;
  std::string path_;
};

TEST_F(FakeValgrind, AllIsWell) {
  install(
      "i=1; while [ $i -le $trials ]; do printf 'events: Ir\\nsummary: %d\\n' $i >$out.$i; "
      "i=$((i+1)); done");
  const std::vector<Counted> results = count(3);
  ASSERT_EQ(results.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(results[i].counts.has_value()) << results[i].why;
    EXPECT_EQ(results[i].counts->instructions, i + 1.0);
  }
}

TEST_F(FakeValgrind, OneTrialEndsTheProcess) {
  // Of three trials the second dies; the third gets a new process.
  install(
      "printf 'events: Ir\\nsummary: %d\\n' $trials >$out.1\n"
      "[ $trials = 1 ] || { echo 'unhandled instruction' >&2; kill -ILL $$; }");
  const std::vector<Counted> results = count(3);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].counts.value().instructions, 3);
  EXPECT_FALSE(results[1].counts.has_value());
  EXPECT_NE(results[1].why.find("status 132: unhandled instruction"), std::string::npos)
      << results[1].why;
  EXPECT_EQ(results[2].counts.value().instructions, 1);
}

TEST_F(FakeValgrind, AFileIsCutShort) {
  install("printf 'events: Ir\\nsumm' >$out.1");
  const std::vector<Counted> results = count(1);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_FALSE(results[0].counts.has_value());
  EXPECT_NE(results[0].why.find("cut short"), std::string::npos) << results[0].why;
}

TEST_F(FakeValgrind, AnUnusableTmpdirIsNotUsed) {
  install("printf 'events: Ir\\nsummary: 1\\n' >$out.1");
  const char* const before = std::getenv("TMPDIR");
  const std::string old = before != nullptr ? before : "";
  for (const char* folder : {"/proc", "/nonexistent"}) {
    ::setenv("TMPDIR", folder, 1);
    EXPECT_EQ(callgrind::why_not(callgrind::choose_caches({})), "") << folder;
  }
  before != nullptr ? ::setenv("TMPDIR", old.c_str(), 1) : ::unsetenv("TMPDIR");
}

TEST_F(FakeValgrind, ThereIsNone) {
  const std::string why = callgrind::why_not(callgrind::choose_caches({}));
  EXPECT_NE(why.find("No such file"), std::string::npos) << why;
  const std::vector<Counted> results = count(2);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_FALSE(results[0].counts.has_value());
  EXPECT_NE(results[1].why.find("status 127"), std::string::npos) << results[1].why;
}

/// The record in which a counter describes itself, as it is in the file.
std::string introduction() {
  const test::TemporaryFolder folder;
  Options options;
  options.out = folder.file("out");
  Notebook notebook("counting", "", "", options, {}, [](const std::string&) {});
  const Counter counter({});
  notebook.part("counter", [&] { counter.introduce(notebook); });
  notebook.finish(0);
  return test::contents(notebook.file(".jsonl"));
}

TEST_F(FakeValgrind, CountersSayWhichTheyAre) {
  std::string why;
  if (PerfEvents::open(why)) GTEST_SKIP() << "this machine has counters";
  const std::string neither = introduction();
  EXPECT_NE(neither.find(R"("source":"none")"), std::string::npos) << neither;
  EXPECT_NE(neither.find(R"("kind":"absent")"), std::string::npos) << neither;
  EXPECT_NE(neither.find(why), std::string::npos) << neither;
  EXPECT_NE(neither.find("ended with status 127"), std::string::npos) << neither;
  install("printf 'events: Ir\\nsummary: 1\\n' >$out.1");
  const std::string simulated = introduction();
  EXPECT_NE(simulated.find(R"("source":"callgrind")"), std::string::npos) << simulated;
  EXPECT_NE(simulated.find(R"("kind":"note")"), std::string::npos) << simulated;
  EXPECT_NE(simulated.find(R"("why_no_hardware":")" + why), std::string::npos) << simulated;
}

// Hardware counters are not available everywhere, but the kernel counts page faults through the
// same interface.
TEST(PerfEvents, PageFaultsOfFreshMemory) {
  std::string why;
  const std::unique_ptr<PerfEvents> events = open_libpfm(why);
  if (!events) GTEST_SKIP() << why;
  const std::unique_ptr<PerfEvent> faults = events->event("perf::PAGE-FAULTS", why);
  if (!faults) GTEST_SKIP() << why;
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kPages = 100;
  char* const memory = static_cast<char*>(
      ::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(::madvise(memory, kPages * kPage, MADV_NOHUGEPAGE), 0);
  faults->start();
  for (std::size_t i = 0; i < kPages; ++i) memory[i * kPage] = 1;
  const std::optional<double> first = faults->stop();
  faults->start();
  for (std::size_t i = 0; i < kPages; ++i) memory[i * kPage] = 2;
  const std::optional<double> second = faults->stop();
  ::munmap(memory, kPages * kPage);
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_GE(*first, kPages);
  EXPECT_LT(*second, kPages / 10);
}

TEST(PerfEvents, SaysWhyNot) {
  std::string why;
  const std::unique_ptr<PerfEvents> events = open_libpfm(why);
  if (!events) {
    EXPECT_NE(why.find("libpfm"), std::string::npos);
    return;
  }
  EXPECT_EQ(events->event("perf::NO-SUCH-EVENT", why), nullptr);
  EXPECT_NE(why.find("NO-SUCH-EVENT"), std::string::npos);
}

TEST(PerfEvents, NoNumbersWithoutCounters) {
  std::string why;
  if (PerfEvents::open(why)) GTEST_SKIP() << "this machine has counters";
  const std::unique_ptr<PerfEvents> events = open_libpfm(why);
  if (!events) GTEST_SKIP() << why;
  int calls = 0;
  const Counts counts = events->count([&] { ++calls; }, 2);
  EXPECT_GE(calls, 3);
  EXPECT_FALSE(counts.instructions.has_value());
}

// With counters, a loop of known length has the expected loads and branches.
TEST(PerfEvents, LoadsOfALoop) {
  std::string why;
  const std::unique_ptr<PerfEvents> events = PerfEvents::open(why);
  if (!events) GTEST_SKIP() << why;
  constexpr double kLoads = 1e6;
  const Counts counts = events->count(prepare_trial("read", static_cast<std::int64_t>(kLoads)), 1);
  ASSERT_TRUE(counts.instructions.has_value());
  EXPECT_GE(*counts.instructions, 3 * kLoads);
  if (!counts.branches) GTEST_SKIP() << "branches are not counted here";
  EXPECT_NEAR(*counts.branches, kLoads, 0.02 * kLoads);
}

TEST(Counts, RecordsHoldWhatIsKnown) {
  Counts counts;
  counts.loads = 3;
  counts.mispredictions = 0;
  EXPECT_EQ(to_json(counts).dump(), R"({"loads":3.0,"mispredictions":0.0})");
}

}  // namespace
}  // namespace baregrad::lab

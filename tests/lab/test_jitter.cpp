// Runs and their events.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include <sched.h>
#include <sys/mman.h>

#include <gtest/gtest.h>

#include "lab/jitter/jitter_runs.h"

namespace baregrad::lab {
namespace {

TimedRun run_of(double ns, const Happened& happened = {}) { return {ns, happened}; }

TEST(Spread, IsWhereSharesOfTheRunsEnd) {
  std::vector<TimedRun> runs;
  for (int i = 1000; i >= 0; --i) runs.push_back(run_of(i));
  const Spread spread = spread_of(runs);
  EXPECT_EQ(spread.p50_ns, 500);
  EXPECT_EQ(spread.p90_ns, 900);
  EXPECT_EQ(spread.p99_ns, 990);
  EXPECT_EQ(spread.p999_ns, 999);
  EXPECT_EQ(spread.max_ns, 1000);
}

TEST(Tail, IsTheSlowestHundredth) {
  std::vector<TimedRun> runs(300, run_of(100));
  runs[5] = run_of(1100, {.preempted = 1, .waited_ns = 900});
  runs[80] = run_of(300, {.migrations = 1, .faults = 3, .stolen = 2});
  runs[299] = run_of(200);
  runs[7] = run_of(101, {.faults = 1});
  const Tail tail = explain_tail(runs);
  EXPECT_EQ(tail.slowest.runs, 3);
  EXPECT_EQ(tail.slowest.preempted, 1);
  EXPECT_EQ(tail.slowest.waited, 1);
  EXPECT_EQ(tail.slowest.migrated, 1);
  EXPECT_EQ(tail.slowest.faulted, 1);
  EXPECT_EQ(tail.slowest.stolen, 1);
  EXPECT_EQ(tail.slowest.nothing, 1);
  EXPECT_EQ(tail.slowest.excess_ns, 1000 + 200 + 100);
  EXPECT_EQ(tail.slowest.waited_ns, 900);
  EXPECT_EQ(tail.others.runs, 297);
  EXPECT_EQ(tail.others.faulted, 1);
  EXPECT_EQ(tail.others.nothing, 296);
  EXPECT_EQ(tail.others.excess_ns, 1);
}

TEST(Tail, OfFewRunsIsTheSlowestOne) {
  const Tail tail = explain_tail({run_of(1), run_of(3), run_of(2)});
  EXPECT_EQ(tail.slowest.runs, 1);
  EXPECT_EQ(tail.slowest.excess_ns, 1);
}

TEST(Tail, AShortWaitExplainsNothing) {
  const Tail tail = explain_tail({run_of(1000, {.waited_ns = 19}), run_of(1000), run_of(1000)});
  EXPECT_EQ(tail.slowest.waited + tail.others.waited, 0);
  const Tail longer = explain_tail({run_of(1000, {.waited_ns = 21}), run_of(1000), run_of(1000)});
  EXPECT_EQ(longer.slowest.waited + longer.others.waited, 1);
}

TEST(Witness, SeesPageFaults) {
  constexpr std::size_t kPages = 64;
  constexpr std::size_t kBytes = kPages * 4096;
  void* memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ::madvise(memory, kBytes, MADV_NOHUGEPAGE);
  const Witness witness;
  const auto touch = [&] {
    for (std::size_t at = 0; at < kBytes; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
  };
  EXPECT_GE(witness.watch(touch).happened.faults, static_cast<std::int64_t>(kPages));
  EXPECT_EQ(witness.watch(touch).happened.faults, 0);
  ::munmap(memory, kBytes);
}

TEST(Witness, SeesSleepAndItsTime) {
  const Witness witness;
  const TimedRun run =
      witness.watch([] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); });
  EXPECT_GE(run.happened.slept, 1);
  EXPECT_GE(run.ns, 2e6);
}

TEST(Witness, SeesMigrations) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) cpus.push_back(cpu);
  }
  if (cpus.size() < 2) GTEST_SKIP() << "one CPU";
  const auto go_to = [](int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof one, &one);
  };
  go_to(cpus[0]);
  const Witness witness;
  EXPECT_GE(witness.watch([&] { go_to(cpus[1]); }).happened.migrations, 1);
  EXPECT_EQ(witness.watch([] {}).happened.migrations, 0);
  ::sched_setaffinity(0, sizeof before, &before);
}

TEST(PinScope, LeavesOneCpuAndGivesAllBack) {
  const auto allowed = [] {
    cpu_set_t set;
    ::sched_getaffinity(0, sizeof set, &set);
    return CPU_COUNT(&set);
  };
  const int before = allowed();
  {
    const PinScope pin;
    if (!pin.ok()) GTEST_SKIP() << "not allowed";
    EXPECT_EQ(allowed(), 1);
    EXPECT_EQ(::sched_getcpu(), pin.cpu());
  }
  EXPECT_EQ(allowed(), before);
}

}  // namespace
}  // namespace baregrad::lab

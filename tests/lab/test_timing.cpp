// Turns and quantiles, with contenders that report given times instead of measuring.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "lab/timing.h"

namespace baregrad::lab {
namespace {

/// Returns its times one after the other, then the last one repeatedly; notes its turns.
Contender scripted(std::string name, std::vector<double> times_ns, std::string& turns) {
  auto next = [name, times = std::move(times_ns), at = std::size_t{0}, &turns]() mutable {
    turns += name;
    const double ns = times[at];
    if (at + 1 < times.size()) ++at;
    return ns;
  };
  return {std::move(name), next};
}

constexpr double kLong = 3600;  // does not elapse during a test

TEST(Summarize, TakesQuantilesOfUnsortedSamples) {
  std::vector<double> samples(101);
  std::iota(samples.rbegin(), samples.rend(), 0.0);
  const Timing timing = summarize(samples);
  EXPECT_EQ(timing.p10_ns, 10);
  EXPECT_EQ(timing.median_ns, 50);
  EXPECT_EQ(timing.p90_ns, 90);
  EXPECT_EQ(timing.repeats, 101);
}

TEST(Summarize, OfOneSampleIsThatSample) {
  const Timing timing = summarize({7});
  EXPECT_EQ(timing.p10_ns, 7);
  EXPECT_EQ(timing.median_ns, 7);
  EXPECT_EQ(timing.p90_ns, 7);
  EXPECT_EQ(timing.repeats, 1);
}

TEST(Summarize, TheMedianOfAnEvenNumberIsBetweenTheMiddleTwo) {
  EXPECT_EQ(summarize({8, 2}).median_ns, 5);
  EXPECT_EQ(summarize({1, 100, 4, 2}).median_ns, 3);
}

TEST(Summarize, OneOutlierDoesNotMoveTheMedian) {
  const Timing timing = summarize({5, 5, 1e9, 5, 5});
  EXPECT_EQ(timing.median_ns, 5);
  EXPECT_EQ(timing.p90_ns, 1e9);
}

TEST(Summarize, IsWrittenWithUnits) {
  EXPECT_EQ(to_json(summarize({1, 2, 3})),
            (Json{{"median_ns", 2.0}, {"p10_ns", 1.0}, {"p90_ns", 3.0}, {"repeats", 3}}));
}

TEST(TakeTurns, OneAfterTheOtherWithAFirstCallThatDoesNotCount) {
  std::string turns;
  const std::vector<Timing> timings =
      take_turns({scripted("a", {900, 1, 2, 3}, turns), scripted("b", {900, 4, 5, 6}, turns)},
                 {.seconds = kLong, .least = 1, .most = 3});
  EXPECT_EQ(turns, "abababab");
  ASSERT_EQ(timings.size(), 2U);
  EXPECT_EQ(timings[0].median_ns, 2);
  EXPECT_EQ(timings[0].p90_ns, 3);
  EXPECT_EQ(timings[1].median_ns, 5);
  EXPECT_EQ(timings[1].repeats, 3);
}

TEST(TakeTurns, AfterAPauseTheFirstSampleDoesNotCount) {
  std::string turns;
  const std::vector<Timing> timings =
      take_turns({scripted("a", {900, 800, 1}, turns), scripted("b", {900, 700, 2}, turns)},
                 {.seconds = kLong, .least = 1, .most = 1, .settle = std::chrono::milliseconds(1)});
  EXPECT_EQ(turns.substr(0, 4), "abaa");
  EXPECT_GE(timings[0].repeats, 1);
  EXPECT_EQ(timings[0].p90_ns, 1);
  EXPECT_EQ(timings[1].p90_ns, 2);
  EXPECT_EQ(std::count(turns.begin(), turns.end(), 'a'), 2 + timings[0].repeats);
}

TEST(TakeTurns, AfterAPauseALongSampleCounts) {
  std::string turns;
  const std::vector<Timing> timings =
      take_turns({scripted("a", {900, 1e9}, turns)},
                 {.seconds = kLong, .least = 1, .most = 2, .settle = std::chrono::milliseconds(1)});
  EXPECT_EQ(turns, "aaa");
  EXPECT_EQ(timings[0].repeats, 2);
}

TEST(TakeTurns, LeastHoldsWhenTheTimeIsOver) {
  std::string turns;
  // Any time is longer than none, so each would count as slow; a contender that reports 0 never
  // does.
  const std::vector<Timing> timings =
      take_turns({scripted("a", {0}, turns)}, {.seconds = 0, .least = 4, .most = 100});
  EXPECT_EQ(timings[0].repeats, 4);
  EXPECT_EQ(turns, "aaaaa");
}

TEST(TakeTurns, MostHoldsWhenThereIsTimeLeft) {
  std::string turns;
  const std::vector<Timing> timings =
      take_turns({scripted("a", {1}, turns)}, {.seconds = kLong, .least = 3, .most = 7});
  EXPECT_EQ(timings[0].repeats, 7);
}

TEST(TakeTurns, WhoIsSlowerThanAllTheTimeHasTheLeastAndCountsFromTheFirstCall) {
  std::string turns;
  const std::vector<Timing> timings =
      take_turns({scripted("slow", {2 * kLong * 1e9}, turns), scripted("quick", {10, 1}, turns)},
                 {.seconds = kLong, .least = 3, .most = 5});
  EXPECT_EQ(timings[0].repeats, 3);
  EXPECT_EQ(timings[0].median_ns, 2 * kLong * 1e9);
  EXPECT_EQ(timings[1].repeats, 5);
  EXPECT_EQ(timings[1].p90_ns, 1);
  EXPECT_EQ(turns, "slowquickslowquickslowquickquickquickquick");
}

TEST(Contender, CallsASlowFunctionOnceASample) {
  std::vector<std::int64_t> slow_calls;
  const Contender slow = contender("slow", [&](std::int64_t calls) {
    slow_calls.push_back(calls);
    std::this_thread::sleep_for(calls * std::chrono::milliseconds(2));
  });
  EXPECT_GE(slow.sample_ns(), 2e6);
  EXPECT_GE(slow.sample_ns(), 2e6);
  EXPECT_EQ(slow_calls, (std::vector<std::int64_t>{1, 1}));
}

TEST(Contender, DoesNotWaitForOneThatTakesNoTime) {
  std::vector<std::int64_t> all_calls;
  const Contender nothing =
      contender("nothing", [&](std::int64_t calls) { all_calls.push_back(calls); });
  nothing.sample_ns();
  const std::int64_t settled = all_calls.back();
  EXPECT_EQ(settled, 1 << 20);
  nothing.sample_ns();
  EXPECT_EQ(all_calls.back(), settled);
}

TEST(Contender, DividesByTheNumberOfCalls) {
  const Contender each = contender("sleeps at first", [](std::int64_t calls) {
    std::this_thread::sleep_for(calls * std::chrono::microseconds(20));
  });
  each.sample_ns();
  EXPECT_GE(each.sample_ns(), 20e3);
}

TEST(Contender, OnceIsCalledAsOftenAsAsked) {
  int count = 0;
  std::int64_t before = 0;
  const Contender once = contender_once("once", [&] { ++count; });
  once.sample_ns();
  before = count;
  once.sample_ns();
  EXPECT_GT(count - before, 1);
}

}  // namespace
}  // namespace baregrad::lab

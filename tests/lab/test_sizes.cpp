// The parameters of experiments: threads, working sets, levels of memory; a random cycle; counted
// work.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "backends/cpu/ceilings.h"
#include "backends/cpu/table.h"
#include "baregrad/allocator.h"
#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "baregrad/profile.h"
#include "bench/ceilings.h"
#include "lab/ceilings/chase.h"
#include "lab/memory_levels.h"
#include "lab/roofline/counted_work.h"
#include "lab/thread_counts.h"

namespace baregrad::lab {
namespace {

bench::Machine machine_with(std::vector<bench::Cache> caches, std::size_t memory) {
  bench::Machine machine{};
  machine.memory_bytes = memory;
  machine.caches = std::move(caches);
  return machine;
}
const bench::Machine kUsual = machine_with({{1, "data", 32 << 10, 1},
                                            {1, "instruction", 64 << 10, 1},
                                            {2, "unified", 1 << 20, 1},
                                            {3, "unified", 32 << 20, 8}},
                                           16UL << 30);

TEST(ThreadCounts, EveryOneOfASmallMachineAndTwoADoublingOfALargeOne) {
  EXPECT_EQ(thread_counts(1), (std::vector<int>{1}));
  EXPECT_EQ(thread_counts(2), (std::vector<int>{1, 2}));
  EXPECT_EQ(thread_counts(3), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(thread_counts(4), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(thread_counts(20), (std::vector<int>{1, 2, 3, 4, 6, 8, 12, 16, 20}));
  EXPECT_EQ(thread_counts(64).back(), 64);
}

TEST(MemoryLevels, HalfOfEachCacheOncePerThreadWhereItIsACores) {
  const std::vector<MemoryLevel> levels = memory_levels(kUsual, 2);
  ASSERT_EQ(levels.size(), 4U);
  EXPECT_EQ(levels[0].name, "L1");
  EXPECT_EQ(levels[0].holds, 32U << 10);
  EXPECT_EQ(levels[0].work, 32U << 10);
  EXPECT_EQ(levels[1].work, 1U << 20);
  EXPECT_EQ(levels[2].work, 16U << 20);
  EXPECT_EQ(levels[3].name, "memory");
  EXPECT_GT(levels[3].work, 4UL * (32U << 20));
}

TEST(StreamCeilings, DoWhatTheirNamesSayOnEveryInstructionSet) {
  constexpr std::int64_t kCount = 2 * kernels::Ceilings::kUnit;
  for (const kernels::Isa isa : kernels::available_isas()) {
    const kernels::Ceilings loops = kernels::ceilings(isa);
    const Tensor x = arange(0, kCount, 1, DType::Float32);
    const Tensor y = full({kCount}, 3, DType::Float32);
    const float sum = kCount * (kCount - 1) / 2;
    EXPECT_EQ(loops.read(x.data<float>(), kCount), sum);
    for (const bool streamed : {false, true}) {
      const Tensor out = zeros({kCount});
      loops.copy(x.data<float>(), out.data<float>(), kCount / 2, streamed);
      EXPECT_EQ(out.data<float>()[kCount / 2 - 1], kCount / 2 - 1);
      EXPECT_EQ(out.data<float>()[kCount / 2], 0);
      loops.add(x.data<float>(), y.data<float>(), out.data<float>(), kCount, streamed);
      for (std::int64_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(out.data<float>()[i], static_cast<float>(i) + 3);
      }
    }
    loops.update(x.data<float>(), kCount / 2);
    for (std::int64_t i = 0; i < kCount; ++i) {
      const auto before = static_cast<float>(i);
      ASSERT_EQ(x.data<float>()[i], i < kCount / 2 ? before / 2 + 1 : before);
    }
  }
}

TEST(StreamCeilings, GoOverMemoryFromWhereTensorsHaveTheirs) {
  constexpr std::size_t kStreamBytes = 32UL << 20;
  Allocator& source = system_allocator();
  source.reset_peak();
  const std::size_t before = source.stats().live_bytes;
  EXPECT_GT(bench::stream_gb_per_s(bench::Stream::Read, kStreamBytes, 1, 0.001), 0);
  EXPECT_GT(source.stats().peak_bytes, before + kStreamBytes - (1 << 20));
  EXPECT_EQ(source.stats().live_bytes, before);
}

TEST(MemoryLevels, ABlockLiesInTheSmallestThatHoldsIt) {
  const std::vector<MemoryLevel> levels = memory_levels(kUsual, 1);
  EXPECT_EQ(level_of(levels, 0).name, "L1");
  EXPECT_EQ(level_of(levels, 32 << 10).name, "L1");
  EXPECT_EQ(level_of(levels, (32 << 10) + 1).name, "L2");
  EXPECT_EQ(level_of(levels, 2 << 20).name, "L3");
  EXPECT_EQ(level_of(levels, 1UL << 40).name, "memory");
}

TEST(MemoryLevels, MachinesWithoutAThirdCacheAndWithLittleMemory) {
  const bench::Machine small =
      machine_with({{1, "data", 32 << 10, 1}, {2, "unified", 1 << 20, 1}}, 64UL << 20);
  const std::vector<MemoryLevel> levels = memory_levels(small, 1);
  ASSERT_EQ(levels.size(), 3U);
  EXPECT_EQ(levels[2].name, "memory");
  EXPECT_EQ(levels[2].work, 16UL << 20);
  // A system that reports no caches: typical sizes.
  EXPECT_EQ(memory_levels(machine_with({}, 0), 1).size(), 4U);
}

TEST(WorkingSets, GrowFromFourKibAndStopAtAQuarterOfTheMemory) {
  const std::vector<std::size_t> sets = working_sets(kUsual, 2, 256UL << 20);
  EXPECT_EQ(sets.front(), 4096U);
  EXPECT_EQ(sets.back(), 256UL << 20);
  EXPECT_TRUE(std::is_sorted(sets.begin(), sets.end()));
  for (const std::size_t bytes : sets) EXPECT_EQ(bytes % 64, 0U);
  EXPECT_EQ(working_sets(machine_with({}, 256UL << 20), 1, 256UL << 20).back(), 64UL << 20);
  EXPECT_EQ(working_sets(machine_with({}, 1024), 1, 1UL << 20), (std::vector<std::size_t>{4096}));
}

TEST(Chase, TheCycleGoesThroughEveryElementOnce) {
  for (const std::uint32_t count : {1U, 2U, 3U, 64U, 1000U}) {
    const std::vector<std::uint32_t> next = random_cycle(count, 5);
    std::set<std::uint32_t> seen;
    for (std::uint32_t at = 0; seen.insert(at).second;) at = next[at];
    EXPECT_EQ(seen.size(), count);
  }
  EXPECT_EQ(random_cycle(1000, 5), random_cycle(1000, 5));
  EXPECT_NE(random_cycle(1000, 5), random_cycle(1000, 6));
}

TEST(Chase, FollowsItsPointersInBothKindsOfPages) {
  for (const PageSize pages : {PageSize::Small, PageSize::Huge}) {
    Chase chase(64 << 10, pages, 1);
    const Timing timing = chase.measure(0);
    EXPECT_EQ(timing.repeats, 3);
    EXPECT_GT(timing.median_ns, 0);
  }
}

TEST(CountedWork, IsTheSumOverAllOps) {
  const Tensor a = ones({3, 4});
  const Tensor b = ones({4, 5});
  const profile::Work product = count_work([&] { exp(matmul(a, b)); });
  EXPECT_EQ(product.flops, 2U * 3 * 4 * 5 + 15);
  EXPECT_EQ(product.bytes, 4U * (12 + 20 + 15) + 4U * 2 * 15);
  EXPECT_EQ(count_work([] {}).flops, 0U);
}

TEST(CountedWork, BackwardOfALinearLayerIsTwoMoreProducts) {
  const Tensor x = ones({8, 16}).requires_grad_();
  const Tensor w = ones({4, 16}).requires_grad_();
  const Tensor g = ones({8, 4});
  const profile::Work work = count_work([&] { autograd::grad({linear(x, w)}, {x, w}, {g}); });
  EXPECT_EQ(work.flops, 3U * 2 * 8 * 4 * 16);
}

TEST(CountedWork, EndsItsRecordingAlsoWhenTheWorkThrows) {
  EXPECT_THROW(count_work([] { matmul(ones({2, 3}), ones({2, 3})); }), Error);
  EXPECT_FALSE(profile::is_recording());
  EXPECT_EQ(count_work([] { exp(ones({2})); }).flops, 2U);
}

}  // namespace
}  // namespace baregrad::lab

// The arena: no page faults, exact capacity, checkpoints.
#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include <sys/resource.h>

#include <gtest/gtest.h>

#include "alloc_testing.h"
#include "baregrad/allocator.h"
#include "baregrad/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace baregrad {
namespace {

using namespace testing_tools;  // NOLINT(google-build-using-namespace)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

TEST(ArenaAllocator, FirstUseDoesNotFault) {
  for (std::size_t capacity : {kMib, 32 * kMib + 8192}) {
    ArenaAllocator arena(capacity);
    const auto faults = [] {
      rusage usage{};
      getrusage(RUSAGE_THREAD, &usage);
      return usage.ru_minflt + usage.ru_majflt;
    };
    faults();
    std::array<Block, 64> blocks;
    const long before = faults();
    for (Block& block : blocks) block = make_block(arena, capacity / 64, 1);
    for (const Block& block : blocks) arena.deallocate(block.data, block.bytes);
    const long after = faults();
    // The shadow memory of a sanitizer causes page faults of its own.
    if (!kSanitized) {
      EXPECT_EQ(after - before, 0) << capacity;
    }
    EXPECT_EQ(arena.stats().peak_bytes, capacity / 64 * 64);
  }
}

TEST(ArenaAllocator, FillsToTheLastByteThenRefuses) {
  ArenaAllocator arena(kMib);
  EXPECT_EQ(arena.capacity(), kMib);
  const Block half = make_block(arena, kMib / 2, 1);
  const Block rest = make_block(arena, kMib / 2 - 63, 2);
  EXPECT_EQ(arena.used(), kMib);
  for (std::size_t bytes : {0ul, 1ul, kMib}) EXPECT_THROW(arena.allocate(bytes), OutOfMemory);
  EXPECT_TRUE(intact(half) && intact(rest));
  arena.deallocate(rest.data, rest.bytes);
  const Block again = make_block(arena, kMib / 2, 3);
  EXPECT_TRUE(intact(half) && intact(again));
  arena.deallocate(again.data, again.bytes);
  arena.deallocate(half.data, half.bytes);
  void* all = arena.allocate(kMib);
  EXPECT_EQ(all, half.data);
  arena.deallocate(all, kMib);
  EXPECT_EQ(arena.stats().reserved_bytes, kMib);
  EXPECT_EQ(arena.stats().system_allocations, 1u);
}

TEST(ArenaAllocator, UnreasonableCapacitiesAreRefused) {
  for (std::size_t capacity :
       {SIZE_MAX, SIZE_MAX - 63, std::size_t{1} << 62, std::size_t{1} << 46}) {
    try {
      ArenaAllocator arena(capacity);
      ADD_FAILURE() << capacity;
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.requested_bytes(), capacity);
    }
  }
  ArenaAllocator nothing(0);
  EXPECT_THROW(nothing.allocate(0), OutOfMemory);
}

TEST(ArenaAllocator, RewindRefusesWhileNewerBlocksLive) {
  ArenaAllocator arena(kMib);
  void* old = arena.allocate(100);
  const ArenaAllocator::Checkpoint mark = arena.checkpoint();
  void* first = arena.allocate(1000);
  void* second = arena.allocate(1000);
  EXPECT_THROW(arena.rewind(mark), ValueError);
  arena.deallocate(old, 100);  // one free, but not of a newer block
  EXPECT_THROW(arena.rewind(mark), ValueError);
  arena.deallocate(first, 1000);
  EXPECT_THROW(arena.rewind(mark), ValueError);
  arena.deallocate(second, 1000);
  arena.rewind(mark);
  EXPECT_EQ(arena.used(), 0u);
  EXPECT_EQ(arena.allocate(100), old);
  arena.deallocate(old, 100);
}

TEST(ArenaAllocator, NestedCheckpoints) {
  ArenaAllocator arena(kMib);
  void* a = arena.allocate(64);
  const auto outer = arena.checkpoint();
  void* b = arena.allocate(64);
  const auto inner = arena.checkpoint();
  void* c = arena.allocate(64);
  arena.deallocate(c, 64);
  arena.rewind(inner);
  EXPECT_EQ(arena.used(), inner.used);
  EXPECT_THROW(arena.rewind(outer), ValueError);
  EXPECT_EQ(arena.allocate(64), c);
  arena.deallocate(b, 64);
  EXPECT_THROW(arena.rewind(outer), ValueError);
  EXPECT_THROW(arena.rewind(inner), ValueError);
  arena.deallocate(c, 64);
  arena.rewind(outer);
  EXPECT_EQ(arena.used(), outer.used);
  arena.deallocate(a, 64);
}

TEST(ArenaAllocator, PointerStandsAtTheTopmostLiveBlock) {
  ArenaAllocator arena(8 * kMib);
  std::mt19937 random(2);
  std::vector<Block> blocks;
  char* base = static_cast<char*>(arena.allocate(0));
  arena.deallocate(base, 0);
  const auto end_of = [&](const Block& block) {
    const std::size_t size = std::max<std::size_t>((block.bytes + 63) / 64 * 64, 64);
    return static_cast<std::size_t>(static_cast<char*>(block.data) - base) + size;
  };
  for (int step = 0; step < 20000; ++step) {
    if (blocks.empty() || (random() % 100 < 52 && blocks.size() < 300)) {
      const std::size_t bytes = random() % (std::size_t{1} << (random() % 15));
      try {
        blocks.push_back({arena.allocate(bytes), bytes, 0});
      } catch (const OutOfMemory&) {
        ASSERT_GT(arena.used() + std::max<std::size_t>(bytes, 1), arena.capacity());
      }
    } else {
      // Mostly recent blocks are freed, as in a training step.
      const std::size_t depth = std::min<std::size_t>(blocks.size(), 1 + random() % 40);
      const auto victim = blocks.end() - static_cast<std::ptrdiff_t>(depth);
      arena.deallocate(victim->data, victim->bytes);
      blocks.erase(victim);
    }
    std::size_t top = 0;
    for (const Block& block : blocks) top = std::max(top, end_of(block));
    ASSERT_EQ(arena.used(), top) << step;
  }
  for (const Block& block : blocks) arena.deallocate(block.data, block.bytes);
  EXPECT_EQ(arena.used(), 0u);
}

#if defined(__SANITIZE_ADDRESS__)
TEST(ArenaAllocator, FreedBytesArePoisoned) {
  ArenaAllocator arena(kMib);
  char* block = static_cast<char*>(arena.allocate(100));
  EXPECT_EQ(__asan_region_is_poisoned(block, 100), nullptr);
  EXPECT_TRUE(__asan_address_is_poisoned(block + 100));
  arena.deallocate(block, 100);
  EXPECT_TRUE(__asan_address_is_poisoned(block));
}
#endif

}  // namespace
}  // namespace baregrad

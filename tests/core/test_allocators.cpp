// Allocators: one suite that all of them pass, then the small ones, and the choice of the default.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>

#include "alloc_testing.h"
#include "baregrad/allocator.h"
#include "baregrad/error.h"

namespace baregrad {
namespace {

using namespace testing_tools;  // NOLINT(google-build-using-namespace)

// The guarantees of every allocator.

struct Subject {
  virtual ~Subject() = default;
  virtual Allocator& allocator() = 0;
};

struct SystemSubject : Subject {
  Allocator& allocator() override { return system_allocator(); }
};
struct PoolSubject : Subject {
  PoolAllocator pool;
  Allocator& allocator() override { return pool; }
};
struct GlobalPoolSubject : Subject {
  Allocator& allocator() override { return pool_allocator(); }
};
struct ArenaSubject : Subject {
  ArenaAllocator arena{64 * kMib};
  Allocator& allocator() override { return arena; }
};
struct FaultSubject : Subject {
  PoolAllocator pool;
  FaultInjectingAllocator faulty{pool};
  Allocator& allocator() override { return faulty; }
};

template <class T>
class EveryAllocator : public testing::Test {
 protected:
  Allocator& allocator() { return subject_.allocator(); }

 private:
  T subject_;
};
using Subjects =
    testing::Types<SystemSubject, PoolSubject, GlobalPoolSubject, ArenaSubject, FaultSubject>;
TYPED_TEST_SUITE(EveryAllocator, Subjects);

TYPED_TEST(EveryAllocator, BlocksAreAlignedAndDisjoint) {
  Allocator& allocator = this->allocator();
  std::vector<Block> blocks;
  unsigned char mark = 0;
  for (std::size_t base : {1, 2, 63, 64, 65, 1000, 1024, 1025, 4096, 4097, 40000, 65536, 70000,
                           1 << 20, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 5 << 20}) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      blocks.push_back(make_block(allocator, base, ++mark));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().data) % kAlignment, 0u) << base;
    }
  }
  for (const Block& block : blocks) {
    EXPECT_TRUE(intact(block)) << block.bytes;
    allocator.deallocate(block.data, block.bytes);
  }
}

TYPED_TEST(EveryAllocator, ZeroBytesAndNull) {
  Allocator& allocator = this->allocator();
  const AllocatorStats before = allocator.stats();
  void* first = allocator.allocate(0);
  void* second = allocator.allocate(0);
  EXPECT_NE(first, nullptr);
  EXPECT_NE(first, second);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % kAlignment, 0u);
  EXPECT_EQ(allocator.stats().live_bytes, before.live_bytes);
  EXPECT_EQ(allocator.stats().allocations, before.allocations + 2);
  allocator.deallocate(first, 0);
  allocator.deallocate(second, 0);
  allocator.deallocate(nullptr, 0);
  allocator.deallocate(nullptr, 100);
  EXPECT_EQ(allocator.stats().live_bytes, before.live_bytes);
}

TYPED_TEST(EveryAllocator, AbsurdSizesAreRefused) {
  Allocator& allocator = this->allocator();
  const Block kept = make_block(allocator, 1000, 7);
  const AllocatorStats before = allocator.stats();
  for (std::size_t bytes :
       {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 62, SIZE_MAX - 63, SIZE_MAX - 64, SIZE_MAX - 4095,
        SIZE_MAX - kMib, SIZE_MAX / 2, SIZE_MAX / 2 + 1, std::size_t{1} << 62, std::size_t{1} << 48,
        (std::size_t{1} << 46) + 1, std::size_t{1} << 46}) {
    try {
      allocator.allocate(bytes);
      ADD_FAILURE() << bytes << " bytes were granted";
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.requested_bytes(), bytes);
      EXPECT_EQ(error.live_bytes(), before.live_bytes);
      const std::string message = error.what();
      EXPECT_EQ(message.rfind("allocate: ", 0), 0u) << message;
      EXPECT_NE(message.find(std::to_string(bytes)), std::string::npos) << message;
      EXPECT_NE(message.find(std::to_string(before.live_bytes) + " bytes live"), std::string::npos)
          << message;
    }
  }
  const AllocatorStats after = allocator.stats();
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_EQ(after.peak_bytes, before.peak_bytes);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_LE(after.reserved_bytes, before.reserved_bytes);  // it may have trimmed
  EXPECT_TRUE(intact(kept));
  const Block next = make_block(allocator, 1000, 8);
  EXPECT_TRUE(intact(kept) && intact(next));
  allocator.deallocate(next.data, next.bytes);
  allocator.deallocate(kept.data, kept.bytes);
}

TYPED_TEST(EveryAllocator, LiveAndPeakMatchAModel) {
  Allocator& allocator = this->allocator();
  allocator.reset_peak();
  const AllocatorStats start = allocator.stats();
  ASSERT_EQ(start.peak_bytes, start.live_bytes);
  std::mt19937 random(1);
  std::vector<Block> blocks;
  std::size_t live = start.live_bytes;
  std::size_t peak = live;
  std::uint64_t allocations = start.allocations;
  for (int step = 0; step < 4000; ++step) {
    const bool grow = blocks.empty() || (blocks.size() < 40 && random() % 2 == 0);
    if (grow) {
      const std::size_t bytes = random() % (std::size_t{1} << (random() % 19));
      blocks.push_back(make_block(allocator, bytes, static_cast<unsigned char>(random())));
      live += bytes;
      peak = std::max(peak, live);
      ++allocations;
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      ASSERT_TRUE(intact(blocks.back()));
      allocator.deallocate(blocks.back().data, blocks.back().bytes);
      live -= blocks.back().bytes;
      blocks.pop_back();
    }
    const AllocatorStats stats = allocator.stats();
    ASSERT_EQ(stats.live_bytes, live) << step;
    ASSERT_EQ(stats.peak_bytes, peak) << step;
    ASSERT_EQ(stats.allocations, allocations) << step;
    ASSERT_GE(stats.reserved_bytes, live) << step;
    if (step % 1000 == 999) {
      allocator.reset_peak();
      peak = live;
      ASSERT_EQ(allocator.stats().peak_bytes, live);
    }
  }
  for (const Block& block : blocks) allocator.deallocate(block.data, block.bytes);
  EXPECT_EQ(allocator.stats().live_bytes, start.live_bytes);
  EXPECT_EQ(allocator.stats().peak_bytes, peak);
}

TYPED_TEST(EveryAllocator, ThreadsExchangeBlocks) {
  Allocator& allocator = this->allocator();
  const AllocatorStats before = allocator.stats();
  constexpr int kThreads = 4;
  constexpr int kSteps = 3000;
  std::mutex mutex;
  std::vector<Block> shelf;
  std::atomic<int> damaged{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int step = 0; step < kSteps; ++step) {
        const std::size_t bytes = random() % (std::size_t{1} << (random() % 14));
        Block block = make_block(allocator, bytes, static_cast<unsigned char>(random()));
        {
          std::lock_guard lock(mutex);
          shelf.push_back(block);
          if (shelf.size() < 64) continue;
          std::swap(shelf[random() % shelf.size()], shelf.back());
          block = shelf.back();
          shelf.pop_back();
        }
        if (!intact(block)) ++damaged;
        allocator.deallocate(block.data, block.bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::size_t on_shelf = 0;
  for (const Block& block : shelf) on_shelf += block.bytes;
  EXPECT_EQ(allocator.stats().live_bytes, before.live_bytes + on_shelf);
  for (const Block& block : shelf) {
    if (!intact(block)) ++damaged;
    allocator.deallocate(block.data, block.bytes);
  }
  EXPECT_EQ(damaged, 0);
  EXPECT_EQ(allocator.stats().live_bytes, before.live_bytes);
  EXPECT_EQ(allocator.stats().allocations, before.allocations + kThreads * kSteps);
}

TYPED_TEST(EveryAllocator, WorksInAForkedChild) {
  Allocator& allocator = this->allocator();
  const Block kept = make_block(allocator, 5000, 9);
  std::atomic<bool> stop{false};
  // Other threads are likely to be inside the allocator at the moment of the fork.
  constexpr int kBusyThreads = kMayAllocateAroundFork ? 2 : 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kBusyThreads; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        for (std::size_t bytes : {100, 3000, 20000, 200000}) {
          allocator.deallocate(allocator.allocate(bytes), bytes);
        }
      }
    });
  }
  for (int repeat = 0; repeat < 20; ++repeat) {
    EXPECT_TRUE(true_in_child([&] {
      bool good = intact(kept);
      for (std::size_t bytes : {100, 3000, 20000, 200000, 3000000}) {
        const Block block = make_block(allocator, bytes, 3);
        good = good && intact(block) && intact(kept);
        allocator.deallocate(block.data, bytes);
      }
      allocator.trim();
      return good && allocator.stats().live_bytes >= kept.bytes;
    }));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  allocator.deallocate(kept.data, kept.bytes);
}

// System.

TEST(SystemAllocator, KeepsNothing) {
  Allocator& system = system_allocator();
  const AllocatorStats before = system.stats();
  for (std::size_t bytes : {100ul, 5000ul, 3 * kMib, 20 * kMib + 1}) {
    void* block = system.allocate(bytes);
    EXPECT_GE(system.stats().reserved_bytes, before.reserved_bytes + bytes);
    EXPECT_LE(system.stats().reserved_bytes, before.reserved_bytes + bytes + bytes / 8 + 64);
    system.deallocate(block, bytes);
  }
  EXPECT_EQ(system.stats().reserved_bytes, before.reserved_bytes);
  EXPECT_EQ(system.stats().system_allocations, before.system_allocations + 4);
  EXPECT_EQ(system.trim(), 0u);
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(SystemAllocator, LargeBlocksStartOnHugePages) {
  std::vector<std::pair<void*, std::size_t>> blocks;
  for (std::size_t bytes : {2 * kMib, 2 * kMib + 1, 3 * kMib, 64 * kMib, 17 * kMib + 5}) {
    blocks.emplace_back(system_allocator().allocate(bytes), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().first) % (2 * kMib), 0u) << bytes;
  }
  for (auto& [block, bytes] : blocks) system_allocator().deallocate(block, bytes);
}
#endif

// Fault injection.

std::string outcomes(Allocator& allocator, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) {
    try {
      allocator.deallocate(allocator.allocate(10), 10);
      result += '.';
    } catch (const OutOfMemory&) {
      result += 'X';
    }
  }
  return result;
}

TEST(FaultInjectingAllocator, FailsWhereTold) {
  PoolAllocator pool;
  FaultInjectingAllocator faulty(pool);
  EXPECT_EQ(outcomes(faulty, 4), "....");
  EXPECT_EQ(faulty.attempts(), 4u);
  faulty.fail_at(0, false);
  EXPECT_EQ(faulty.attempts(), 0u);
  EXPECT_EQ(outcomes(faulty, 4), "X...");
  faulty.fail_at(2, false);
  EXPECT_EQ(outcomes(faulty, 5), "..X..");
  EXPECT_EQ(faulty.attempts(), 5u);
  faulty.fail_at(1, true);
  EXPECT_EQ(outcomes(faulty, 5), ".XXXX");
  faulty.never_fail();
  EXPECT_EQ(outcomes(faulty, 3), "...");
  EXPECT_EQ(faulty.attempts(), 3u);
  EXPECT_EQ(pool.stats().live_bytes, 0u);
  EXPECT_EQ(faulty.stats().allocations, pool.stats().allocations);
  EXPECT_GT(faulty.trim(), 0u);
}

TEST(FaultInjectingAllocator, OneFailureAmongThreads) {
  FaultInjectingAllocator faulty(system_allocator());
  faulty.fail_at(500, false);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const std::string result = outcomes(faulty, 500);
      failures += static_cast<int>(std::count(result.begin(), result.end(), 'X'));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(faulty.attempts(), 2000u);
}

// Selection.

TEST(AllocatorSelection, ScopesNestAndBelongToOneThread) {
  Allocator& outside = current_allocator();
  PoolAllocator first, second;
  {
    AllocatorScope outer(first);
    EXPECT_EQ(&current_allocator(), &first);
    {
      AllocatorScope inner(second);
      EXPECT_EQ(&current_allocator(), &second);
      Allocator* elsewhere = nullptr;
      std::thread([&] { elsewhere = &current_allocator(); }).join();
      EXPECT_EQ(elsewhere, &outside);
    }
    EXPECT_EQ(&current_allocator(), &first);
  }
  EXPECT_EQ(&current_allocator(), &outside);
}

TEST(AllocatorSelection, ByName) {
  EXPECT_EQ(&allocator_by_name("system"), &system_allocator());
  EXPECT_EQ(&allocator_by_name("pool"), &pool_allocator());
  Allocator& arena = allocator_by_name("arena:3");
  EXPECT_EQ(arena.name(), "arena");
  EXPECT_EQ(dynamic_cast<ArenaAllocator&>(arena).capacity(), 3 * kMib);
  EXPECT_EQ(&allocator_by_name("arena:3"), &arena);
  EXPECT_NE(&allocator_by_name("arena:4"), &arena);
  EXPECT_THROW(allocator_by_name("arena:17592186044416"), OutOfMemory);
  for (const char* name : {"", "Pool", "arena:", "arena:0", "arena:-1", "arena:3x", "arena: 3",
                           "arena:99999999999999999999999", "arenas", "heap"}) {
    try {
      allocator_by_name(name);
      ADD_FAILURE() << name;
    } catch (const ValueError& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.rfind("allocator_by_name: ", 0), 0u) << message;
      for (const char* accepted : {"'system'", "'pool'", "'arena'", "'arena:MIB'"}) {
        EXPECT_NE(message.find(accepted), std::string::npos) << message;
      }
    }
  }
}

/// The variable is read once per process, so each case runs in a new process.
void expect_default(const char* setting, const std::function<bool()>& check) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  if (setting == nullptr) {
    unsetenv("BAREGRAD_ALLOC");
  } else {
    setenv("BAREGRAD_ALLOC", setting, 1);
  }
  EXPECT_EXIT(_exit(check() ? 0 : 1), testing::ExitedWithCode(0), "")
      << (setting == nullptr ? "unset" : setting);
  unsetenv("BAREGRAD_ALLOC");
}

TEST(AllocatorSelection, EnvironmentUnset) {
  expect_default(nullptr, [] { return &current_allocator() == &pool_allocator(); });
}
TEST(AllocatorSelection, EnvironmentSystem) {
  expect_default("system", [] {
    setenv("BAREGRAD_ALLOC", "pool", 1);  // before first use, so this choice counts
    if (&current_allocator() != &pool_allocator()) return false;
    setenv("BAREGRAD_ALLOC", "system", 1);
    return &current_allocator() == &pool_allocator();
  });
}
TEST(AllocatorSelection, EnvironmentArena) {
  expect_default("arena:5", [] {
    return dynamic_cast<ArenaAllocator&>(current_allocator()).capacity() == 5 * kMib;
  });
}
TEST(AllocatorSelection, EnvironmentUnknown) {
  expect_default("jemalloc", [] {
    for (int use = 0; use < 2; ++use) {
      try {
        current_allocator();
        return false;
      } catch (const ValueError& error) {
        const std::string message = error.what();
        if (message.rfind("BAREGRAD_ALLOC: unknown allocator 'jemalloc'", 0) != 0) return false;
      }
    }
    AllocatorScope scope(system_allocator());  // a scope needs no default
    return &current_allocator() == &system_allocator();
  });
}

}  // namespace
}  // namespace baregrad

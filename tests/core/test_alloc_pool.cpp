// The pool: reuse, limits, trimming, thread caches and their end.
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

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

TEST(PoolAllocator, ReusesWhatWasFreed) {
  PoolAllocator pool;
  for (std::size_t bytes : {16ul, 4096ul, 5000ul, 50000ul, kMib, 20 * kMib}) {
    pool.deallocate(pool.allocate(bytes), bytes);
    const AllocatorStats warm = pool.stats();
    for (int repeat = 0; repeat < 100; ++repeat) {
      void* block = pool.allocate(bytes);
      static_cast<char*>(block)[bytes - 1] = 1;
      pool.deallocate(block, bytes);
    }
    EXPECT_EQ(pool.stats().system_allocations, warm.system_allocations) << bytes;
    EXPECT_EQ(pool.stats().reserved_bytes, warm.reserved_bytes) << bytes;
  }
}

TEST(PoolAllocator, LargeBlocksServeSmallerRequestsWithinABound) {
  PoolAllocator pool;
  const std::size_t bytes = 32 * kMib - 100;  // inside its class with or without a red zone
  void* block = pool.allocate(bytes);
  pool.deallocate(block, bytes);
  void* close = pool.allocate(29 * kMib);
  ASSERT_EQ(close, block);
  EXPECT_EQ(pool.stats().system_allocations, 1u);
  pool.deallocate(close, 29 * kMib);
  void* far = pool.allocate(16 * kMib);
  ASSERT_NE(far, block);
  EXPECT_EQ(pool.stats().system_allocations, 2u);
  pool.deallocate(far, 16 * kMib);
  // The best fit, not the first: both are cached now.
  EXPECT_EQ(pool.allocate(bytes), block);
  EXPECT_EQ(pool.allocate(16 * kMib), far);
  pool.deallocate(block, bytes);
  pool.deallocate(far, 16 * kMib);
}

#if !defined(__SANITIZE_ADDRESS__)  // there blocks are followed by red zones
TEST(PoolAllocator, WasteIsBounded) {
  for (std::size_t bytes : {4097ul, 5000ul, 8193ul, 66000ul, kMib + 1, 3 * kMib + 1, 33 * kMib}) {
    PoolAllocator pool;
    void* block = pool.allocate(bytes);
    EXPECT_LE(pool.stats().reserved_bytes, bytes + bytes / 4) << bytes;
    pool.deallocate(block, bytes);
  }
  for (std::size_t bytes : {64ul, 65ul, 1024ul, 1025ul, 3000ul, 4096ul}) {
    PoolAllocator pool;
    std::vector<void*> blocks(20000);
    for (void*& block : blocks) block = pool.allocate(bytes);
    const std::size_t rounded = (bytes + 63) / 64 * 64;
    EXPECT_LE(pool.stats().reserved_bytes, blocks.size() * (rounded + rounded / 4) + 2 * kMib)
        << bytes;
    for (void* block : blocks) pool.deallocate(block, bytes);
  }
}
#endif

TEST(PoolAllocator, TrimGivesEverythingBack) {
  PoolAllocator pool;
  std::vector<Block> blocks;
  for (int i = 0; i < 60000; ++i) blocks.push_back(make_block(pool, 100, 1));
  for (std::size_t bytes : {5000ul, 50000ul, 500000ul, 5000000ul}) {
    for (int i = 0; i < 5; ++i) blocks.push_back(make_block(pool, bytes, 2));
  }
  const Block kept = make_block(pool, 300, 3);
  for (const Block& block : blocks) pool.deallocate(block.data, block.bytes);
  const std::size_t before = pool.stats().reserved_bytes;
  ASSERT_GE(before, 30 * kMib);
  const std::size_t returned = pool.trim();
  const std::size_t after = pool.stats().reserved_bytes;
  EXPECT_EQ(before - after, returned);
  EXPECT_EQ(after, 64 * kKib);  // the slab of the block that is still live
  EXPECT_TRUE(intact(kept));
  EXPECT_EQ(pool.trim(), 0u);
  pool.deallocate(kept.data, kept.bytes);
  EXPECT_EQ(pool.trim(), 64 * kKib);
  EXPECT_EQ(pool.stats().reserved_bytes, 0u);
  blocks.assign(1, make_block(pool, 100, 4));
  EXPECT_TRUE(intact(blocks[0]));
  pool.deallocate(blocks[0].data, 100);
}

TEST(PoolAllocator, TrimReachesTheCachesOfIdleThreads) {
  PoolAllocator pool;
  Worker worker;
  worker.run([&] {
    for (std::size_t bytes : {64, 1000, 4000, 9000, 60000}) {
      pool.deallocate(pool.allocate(bytes), bytes);
    }
  });
  const std::size_t held = pool.stats().reserved_bytes;
  EXPECT_GT(held, 0u);
  EXPECT_EQ(pool.trim(), held);
  EXPECT_EQ(pool.stats().reserved_bytes, 0u);
  worker.run([&] {
    const Block block = make_block(pool, 64, 5);
    EXPECT_TRUE(intact(block));
    pool.deallocate(block.data, block.bytes);
  });
}

TEST(PoolAllocator, LimitTrimsFirstThenRefuses) {
  PoolAllocator pool(8 * kMib);
  EXPECT_EQ(pool.limit(), 8 * kMib);
  Worker worker;
  // Fills the limit with blocks that are then cached, in this thread and another.
  std::vector<void*> blocks(90);
  worker.run([&] {
    for (void*& block : blocks) block = pool.allocate(60000);
    for (void* block : blocks) pool.deallocate(block, 60000);
    pool.deallocate(pool.allocate(2000), 2000);
  });
  ASSERT_GT(pool.stats().reserved_bytes, 5 * kMib);
  void* large = pool.allocate(7 * kMib);
  EXPECT_LE(pool.stats().reserved_bytes, 8 * kMib);
  try {
    pool.allocate(2 * kMib);
    ADD_FAILURE() << "the limit was passed";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.requested_bytes(), 2 * kMib);
    EXPECT_EQ(error.live_bytes(), 7 * kMib);
    EXPECT_NE(std::string(error.what()).find("limit is " + std::to_string(8 * kMib)),
              std::string::npos);
  }
  const Block small = make_block(pool, 1000, 6);  // there is space for this one
  EXPECT_TRUE(intact(small));
  pool.deallocate(large, 7 * kMib);
  large = pool.allocate(2 * kMib);
  pool.deallocate(large, 2 * kMib);
  pool.set_limit(0);
  large = pool.allocate(20 * kMib);
  pool.set_limit(kMib);
  EXPECT_THROW(pool.allocate(100000), OutOfMemory);
  pool.deallocate(large, 20 * kMib);
  pool.deallocate(small.data, small.bytes);
  void* fits = pool.allocate(100000);
  EXPECT_LE(pool.stats().reserved_bytes, kMib);
  pool.deallocate(fits, 100000);
}

TEST(PoolAllocator, LimitHoldsForSmallBlocks) {
  PoolAllocator pool(256 * kKib);
  std::vector<Block> blocks;
  try {
    for (;;) blocks.push_back(make_block(pool, 1000, static_cast<unsigned char>(blocks.size())));
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.live_bytes(), blocks.size() * 1000);
  }
  EXPECT_GE(blocks.size(), 200u);
  EXPECT_LE(pool.stats().reserved_bytes, 256 * kKib);
  for (const Block& block : blocks) {
    EXPECT_TRUE(intact(block));
    pool.deallocate(block.data, block.bytes);
  }
  // Slabs whose blocks of one size class are all free serve other classes.
  for (std::size_t i = 0; i < 50; ++i) blocks[i] = make_block(pool, 3000, 1);
  for (std::size_t i = 0; i < 50; ++i) pool.deallocate(blocks[i].data, 3000);
}

TEST(PoolAllocator, ExitingThreadsReturnTheirCaches) {
  PoolAllocator pool;
  std::uint64_t asked = 0;
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::thread([&] {
      for (std::size_t bytes : {64, 2000, 50000}) pool.deallocate(pool.allocate(bytes), bytes);
    }).join();
    if (repeat == 0) asked = pool.stats().system_allocations;
  }
  EXPECT_EQ(pool.stats().system_allocations, asked);
  EXPECT_EQ(pool.stats().allocations, 60u);
  EXPECT_EQ(pool.stats().live_bytes, 0u);
}

TEST(PoolAllocator, BlocksMayBeFreedElsewhere) {
  PoolAllocator pool;
  Worker worker;
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::vector<void*> blocks(200);
    for (void*& block : blocks) block = pool.allocate(256);
    EXPECT_EQ(pool.stats().live_bytes, 200u * 256);
    worker.run([&] {
      for (void* block : blocks) pool.deallocate(block, 256);
    });
    EXPECT_EQ(pool.stats().live_bytes, 0u);
  }
  // Without a way back to the allocating thread this would have grown to 2.5 MB.
  EXPECT_LE(pool.stats().reserved_bytes, 192 * kKib);
}

TEST(PoolAllocator, PeakAcrossThreadsIsWithinItsBound) {
  PoolAllocator pool;
  Worker first, second;
  std::vector<void*> a(3000), b(3000);
  first.run([&] {
    for (void*& block : a) block = pool.allocate(1000);
  });
  second.run([&] {
    for (void*& block : b) block = pool.allocate(1000);
  });
  EXPECT_EQ(pool.stats().live_bytes, 6000000u);
  first.run([&] {
    for (void* block : a) pool.deallocate(block, 1000);
  });
  second.run([&] {
    for (void* block : b) pool.deallocate(block, 1000);
  });
  EXPECT_EQ(pool.stats().live_bytes, 0u);
  EXPECT_NEAR(static_cast<double>(pool.stats().peak_bytes), 6000000.0, 3 * 16.0 * kKib);
  pool.reset_peak();
  EXPECT_EQ(pool.stats().peak_bytes, 0u);
}

TEST(PoolAllocator, MayDieBeforeTheThreadsThatUsedIt) {
  Worker worker;
  for (int repeat = 0; repeat < 10; ++repeat) {
    PoolAllocator pool;
    worker.run([&] {
      for (std::size_t bytes : {64, 1000, 50000}) pool.deallocate(pool.allocate(bytes), bytes);
    });
    pool.deallocate(pool.allocate(64), 64);
  }
  PoolAllocator next;
  worker.run([&] {
    const Block block = make_block(next, 64, 1);
    EXPECT_TRUE(intact(block));
    next.deallocate(block.data, block.bytes);
  });
  EXPECT_EQ(next.stats().allocations, 1u);
}

TEST(PoolAllocator, PoolsDoNotMix) {
  PoolAllocator first, second;
  std::vector<Block> in_first, in_second;
  for (int i = 0; i < 500; ++i) {
    in_first.push_back(make_block(first, 200, 1));
    in_second.push_back(make_block(second, 200, 2));
  }
  EXPECT_EQ(first.stats().live_bytes, 100000u);
  EXPECT_EQ(second.stats().live_bytes, 100000u);
  for (int i = 0; i < 500; ++i) {
    EXPECT_TRUE(intact(in_first[static_cast<std::size_t>(i)]));
    first.deallocate(in_first[static_cast<std::size_t>(i)].data, 200);
    second.deallocate(in_second[static_cast<std::size_t>(i)].data, 200);
  }
  first.trim();
  EXPECT_EQ(first.stats().reserved_bytes, 0u);
  EXPECT_GT(second.stats().reserved_bytes, 0u);
}

TEST(PoolAllocator, FreesFromDestructorsOfAnExitingThread) {
  PoolAllocator pool;
  struct Late {
    PoolAllocator* pool = nullptr;
    void* block = nullptr;
    ~Late() {
      if (pool == nullptr) return;
      pool->deallocate(block, 500);
      pool->deallocate(pool->allocate(70), 70);
    }
  };
  std::thread([&] {
    // Constructed before this thread's cache, so destroyed after it.
    thread_local Late late;
    late.pool = &pool;
    late.block = pool.allocate(500);
  }).join();
  EXPECT_EQ(pool.stats().live_bytes, 0u);
  EXPECT_EQ(pool.stats().allocations, 2u);
  pool.trim();
  EXPECT_EQ(pool.stats().reserved_bytes, 0u);
}

TEST(PoolAllocator, TrimAndStatsAmidTraffic) {
  PoolAllocator pool;
  std::atomic<bool> stop{false};
  std::atomic<int> damaged{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<Block> blocks;
      while (!stop) {
        if (blocks.size() < 50 && random() % 2 == 0) {
          const std::size_t bytes = random() % (std::size_t{1} << (random() % 18));
          blocks.push_back(make_block(pool, bytes, static_cast<unsigned char>(random())));
        } else if (!blocks.empty()) {
          if (!intact(blocks.back())) ++damaged;
          pool.deallocate(blocks.back().data, blocks.back().bytes);
          blocks.pop_back();
        }
      }
      for (const Block& block : blocks) pool.deallocate(block.data, block.bytes);
    });
  }
  for (int repeat = 0; repeat < 300; ++repeat) {
    pool.trim();
    const AllocatorStats stats = pool.stats();
    EXPECT_LE(stats.live_bytes, 3u * 50 * 131072 * 2);
    if (repeat % 10 == 0) pool.reset_peak();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(damaged, 0);
  EXPECT_EQ(pool.stats().live_bytes, 0u);
  pool.trim();
  EXPECT_EQ(pool.stats().reserved_bytes, 0u);
}

TEST(PoolAllocator, AChildOwnsWhatOtherThreadsHadCached) {
  PoolAllocator pool;
  Worker worker;
  worker.run([&] {
    for (std::size_t bytes : {64, 1000, 4000, 60000}) pool.deallocate(pool.allocate(bytes), bytes);
  });
  const AllocatorStats before = pool.stats();
  ASSERT_GT(before.reserved_bytes, 0u);
  EXPECT_TRUE(true_in_child([&] {
    const AllocatorStats inherited = pool.stats();
    if (inherited.allocations != before.allocations || inherited.live_bytes != 0) return false;
    // Blocks cached by the other thread are reused here.
    pool.deallocate(pool.allocate(60000), 60000);
    if (pool.stats().system_allocations != before.system_allocations) return false;
    return pool.trim() == before.reserved_bytes && pool.stats().reserved_bytes == 0;
  }));
  EXPECT_EQ(pool.stats().reserved_bytes, before.reserved_bytes);
}

#if defined(__SANITIZE_ADDRESS__)
TEST(PoolAllocator, FreedAndUnaskedBytesArePoisoned) {
  PoolAllocator pool;
  for (std::size_t bytes : {1ul, 64ul, 100ul, 4096ul, 70000ul, 3 * kMib}) {
    char* block = static_cast<char*>(pool.allocate(bytes));
    EXPECT_EQ(__asan_region_is_poisoned(block, bytes), nullptr) << bytes;
    EXPECT_TRUE(__asan_address_is_poisoned(block + bytes)) << bytes;
    pool.deallocate(block, bytes);
    EXPECT_TRUE(__asan_address_is_poisoned(block)) << bytes;
    EXPECT_TRUE(__asan_address_is_poisoned(block + bytes - 1)) << bytes;
  }
}
#endif

}  // namespace
}  // namespace baregrad

// Cache sizes read from folders made by the test, and those of this machine.
#include <array>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "core/cache_sizes.h"
#include "tests/io/files.h"

namespace baregrad {
namespace {

class CacheFolder : public ::testing::Test {
 protected:
  void add(int index, const std::string& level, const std::string& type, const std::string& size,
           const std::string& cpus) {
    const std::string folder = folder_.file("index" + std::to_string(index));
    std::filesystem::create_directory(folder);
    test::put_file(folder + "/level", level + "\n");
    test::put_file(folder + "/type", type + "\n");
    test::put_file(folder + "/size", size + "\n");
    test::put_file(folder + "/shared_cpu_list", cpus + "\n");
  }
  std::size_t read() { return detail::read_caches(folder_.file("").c_str(), found_); }

  test::TemporaryFolder folder_;
  std::array<Cache, 4> found_{};
};

void expect_cache(const Cache& cache, int level, CacheKind kind, std::size_t bytes, int shared_by) {
  EXPECT_EQ(cache.level, level);
  EXPECT_EQ(cache.kind, kind);
  EXPECT_EQ(cache.bytes, bytes);
  EXPECT_EQ(cache.shared_by, shared_by);
}

TEST_F(CacheFolder, ListsOfManyCpus) {
  std::string evens = "0";
  for (int cpu = 2; cpu < 256; cpu += 2) evens += "," + std::to_string(cpu);
  add(0, "3", "Unified", "32M", evens);
  add(1, "3", "Unified", "32M", "3-0");
  add(2, "3", "Unified", "32M", "0-2147483647,0-2147483647");
  ASSERT_EQ(read(), 3U);
  EXPECT_EQ(found_[0].shared_by, 128);
  EXPECT_EQ(found_[1].shared_by, 0) << "a range that runs backwards";
  EXPECT_EQ(found_[2].shared_by, 0) << "more than a number can count";
}

TEST_F(CacheFolder, SizesKindsAndSharing) {
  add(0, "1", "Data", "48K", "0,8");
  add(1, "1", "Instruction", "32K", "0");
  add(2, "2", "Unified", "2048K", "0-1");
  add(3, "3", "Unified", "32M", "0-3,8-11,15");
  ASSERT_EQ(read(), 4U);
  expect_cache(found_[0], 1, CacheKind::Data, 48 << 10, 2);
  expect_cache(found_[1], 1, CacheKind::Instruction, 32 << 10, 1);
  expect_cache(found_[2], 2, CacheKind::Unified, 2 << 20, 2);
  expect_cache(found_[3], 3, CacheKind::Unified, 32 << 20, 9);
}

TEST_F(CacheFolder, NearestFirstWhateverTheOrder) {
  add(0, "3", "Unified", "1G", "");
  add(1, "1", "Instruction", "1000", "x");
  add(2, "1", "Data", "2000", "0-");
  ASSERT_EQ(read(), 3U);
  expect_cache(found_[0], 1, CacheKind::Instruction, 1000, 0);
  expect_cache(found_[1], 1, CacheKind::Data, 2000, 0);
  expect_cache(found_[2], 3, CacheKind::Unified, 1UL << 30, 0);
}

TEST_F(CacheFolder, WithoutASizeThereIsNoCache) {
  add(0, "1", "Data", "", "0");
  add(1, "2", "Unified", "1M", "0");
  ASSERT_EQ(read(), 1U);
  expect_cache(found_[0], 2, CacheKind::Unified, 1 << 20, 1);
}

TEST_F(CacheFolder, NothingAndTooMuch) {
  EXPECT_EQ(read(), 0U);
  EXPECT_EQ(detail::read_caches("/nowhere", found_), 0U);
  EXPECT_EQ(detail::read_caches(std::string(600, 'x').c_str(), found_), 0U);
  for (int i = 0; i < 6; ++i) add(i, "1", "Data", "1K", "0");
  EXPECT_EQ(read(), found_.size());
}

TEST(CacheSizes, AreThoseOfTheListOrUsual) {
  CacheSizes expected = kUsualCacheSizes;
  for (const Cache& cache : caches()) {
    EXPECT_GT(cache.bytes, 0U);
    if (cache.kind == CacheKind::Instruction) continue;
    (cache.level == 1 ? expected.l1 : cache.level == 2 ? expected.l2 : expected.l3) = cache.bytes;
  }
  EXPECT_EQ(cache_sizes().l1, expected.l1);
  EXPECT_EQ(cache_sizes().l2, expected.l2);
  EXPECT_EQ(cache_sizes().l3, expected.l3);
}

}  // namespace
}  // namespace baregrad

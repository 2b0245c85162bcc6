// The counts of the experiment `pages`.
#include <unistd.h>

#include <gtest/gtest.h>

#include "lab/pages/block_sources.h"

namespace baregrad::lab {
namespace {

TEST(PagesLab, TheChosenWordOfASetting) {
  EXPECT_EQ(chosen_word("always [madvise] never\n"), "madvise");
  EXPECT_EQ(chosen_word("[always] madvise never"), "always");
  EXPECT_EQ(chosen_word("always madvise never"), "");
  EXPECT_EQ(chosen_word("]always[ never"), "");
  EXPECT_EQ(chosen_word(""), "");
}

// Whose own memory causes page faults.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

constexpr std::size_t kBytes = std::size_t{8} << 20;

BlockLife life_of(const std::string& name) {
  for (const BlockSource& source : block_sources()) {
    if (source.name == name) return source.live(kBytes);
  }
  ADD_FAILURE() << "no source " << name;
  return {};
}

TEST(PagesLab, SmallPagesFaultOnceEach) {
  const auto pages = static_cast<std::int64_t>(kBytes) / sysconf(_SC_PAGESIZE);
  const BlockLife life = life_of("mmap, small pages");
  EXPECT_EQ(life.get.faults, 0);
  EXPECT_EQ(life.first.faults, pages);
  EXPECT_EQ(life.second.faults, 0);
}

TEST(PagesLab, AVectorTouchesItsPagesWhenItIsMade) {
  const BlockLife life = life_of("std::vector");
  EXPECT_GE(life.get.faults, 4);  // 2 MiB per fault where all memory is in huge pages
  EXPECT_EQ(life.first.faults, 0);
}

TEST(PagesLab, MemoryThatWasTouchedDoesNotFault) {
  for (const char* name : {"pool, again", "arena"}) {
    const BlockLife life = life_of(name);
    EXPECT_EQ(life.first.faults, 0) << name;
    EXPECT_EQ(life.second.faults, 0) << name;
  }
  EXPECT_GE(life_of("arena").prepare.faults, 4);
}

TEST(PagesLab, EverySourceLivesAndOnlyFreshOnesTouchNewPages) {
  for (const BlockSource& source : block_sources()) {
    const BlockLife life = source.live(kBytes);
    EXPECT_GT(life.first.ns, 0) << source.name;
    if (source.fresh) {
      EXPECT_GE(life.get.faults + life.first.faults, 4) << source.name;
    }
  }
}

#endif

}  // namespace
}  // namespace baregrad::lab

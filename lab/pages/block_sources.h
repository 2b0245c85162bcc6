// Where a program can get a block of memory from, and what its first touch costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace baregrad::lab {

/// Time and minor page faults of a stretch of a block's life.
struct Stretch {
  double ns = 0;
  std::int64_t faults = 0;
};

/// From nothing to memory that was written twice and given back.
struct BlockLife {
  Stretch prepare;  ///< what can be done long before: an arena's reservation
  Stretch get;
  Stretch first;   ///< every byte written
  Stretch second;  ///< and once more
  Stretch back;
};

struct BlockSource {
  std::string name;
  bool fresh;  ///< its pages were never touched before
  std::function<BlockLife(std::size_t bytes)> live;
};

/// std::vector, malloc, mmap with small and with huge pages, the pool, the arena; those with a
/// memory of what they gave also as they are the second time.
std::vector<BlockSource> block_sources();

/// Why the system has no block of `bytes` in explicit huge pages; empty when it has.
std::string missing_huge_pages(std::size_t bytes);
/// The source of such blocks.
BlockSource huge_page_source();

/// The word in brackets of a setting of the kernel, "madvise" of "always [madvise] never"; empty
/// when there is none.
std::string_view chosen_word(std::string_view setting);
/// That of transparent huge pages here; empty where the kernel knows none.
std::string huge_page_setting();

}  // namespace baregrad::lab

// Sources of memory blocks, and the cost of the first touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace baregrad::lab {

/// Time and minor page faults of one phase of a block's life.
struct Stretch {
  double ns = 0;
  std::int64_t faults = 0;
};

/// From allocation through two writes to release.
struct BlockLife {
  Stretch prepare;  ///< preparation that can be done long before: an arena's reservation
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

/// std::vector, malloc, mmap with small and with huge pages, the pool, the arena. Sources that
/// reuse blocks appear a second time, with a reused block.
std::vector<BlockSource> block_sources();

/// The reason why the system has no block of `bytes` in explicit huge pages; empty when it has one.
std::string missing_huge_pages(std::size_t bytes);
/// The source of such blocks.
BlockSource huge_page_source();

/// The word in brackets of a setting of the kernel, "madvise" of "always [madvise] never"; empty
/// when there is none.
std::string_view chosen_word(std::string_view setting);
/// The setting of transparent huge pages; empty where the kernel has none.
std::string huge_page_setting();

}  // namespace baregrad::lab

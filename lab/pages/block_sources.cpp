// The life of a block, for each source. Blocks are written by memset.
#include "lab/pages/block_sources.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

#include <malloc.h>
#include <sys/mman.h>

#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "bench/harness.h"
#include "bench/step_cost.h"

namespace baregrad::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kHugePage = std::size_t{2} << 20;

template <class Work>
Stretch watch(const Work& work) {
  const std::int64_t faults = bench::page_faults().minor;
  const Clock::time_point start = Clock::now();
  work();
  const double ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  return {ns, bench::page_faults().minor - faults};
}

void write_all(void* block, std::size_t bytes, int value) {
  std::memset(block, value, bytes);
  bench::keep(*static_cast<char*>(block));
}

/// `get()` returns the block, `back(block)` frees it.
template <class Get, class Back>
BlockLife live(std::size_t bytes, const Get& get, const Back& back) {
  BlockLife life;
  void* block = nullptr;
  life.get = watch([&] { block = get(); });
  life.first = watch([&] { write_all(block, bytes, 1); });
  life.second = watch([&] { write_all(block, bytes, 2); });
  life.back = watch([&] { back(block); });
  return life;
}

void* checked(void* block, std::size_t bytes) {
  if (block != nullptr) return block;
  throw OutOfMemory("pages: the system has no " + std::to_string(bytes) + " bytes", bytes, 0);
}

/// Returns memory kept by free(): otherwise the next block would not be new.
void empty_the_heap() { malloc_trim(0); }

BlockLife live_in_vector(std::size_t bytes) {
  empty_the_heap();
  std::vector<char> block;
  const auto get = [&] {
    block = std::vector<char>(bytes);
    return static_cast<void*>(block.data());
  };
  return live(bytes, get, [&](void*) { std::vector<char>().swap(block); });
}

BlockLife live_in_malloc(std::size_t bytes) {
  return live(
      bytes, [&] { return checked(std::malloc(bytes), bytes); }, [](void* p) { std::free(p); });
}

BlockLife live_in_fresh_malloc(std::size_t bytes) {
  empty_the_heap();
  return live_in_malloc(bytes);
}

BlockLife live_in_used_malloc(std::size_t bytes) {
  void* before = checked(std::malloc(bytes), bytes);
  write_all(before, bytes, 3);
  std::free(before);
  return live_in_malloc(bytes);
}

/// `advice` for madvise, to get pages of one size whatever the system's setting.
BlockLife live_in_mmap(std::size_t bytes, int advice) {
  const std::size_t length = bytes + kHugePage;  // room for alignment to a huge page
  void* pages = nullptr;
  const auto get = [&] {
    pages = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    checked(pages == MAP_FAILED ? nullptr : pages, bytes);
    madvise(pages, length, advice);  // a kernel without huge pages refuses, and uses small ones
    const auto address = reinterpret_cast<std::uintptr_t>(pages);
    return reinterpret_cast<void*>((address + kHugePage - 1) & ~(kHugePage - 1));
  };
  return live(bytes, get, [&](void*) { munmap(pages, length); });
}

/// Such mappings consist of whole pages.
std::size_t whole_huge_pages(std::size_t bytes) {
  return (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

void* map_huge_pages(std::size_t bytes) {
  void* pages = mmap(nullptr, whole_huge_pages(bytes), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

BlockLife live_in_allocator(Allocator& allocator, std::size_t bytes) {
  return live(
      bytes, [&] { return allocator.allocate(bytes); },
      [&](void* block) { allocator.deallocate(block, bytes); });
}

BlockLife live_in_pool(std::size_t bytes, bool used) {
  empty_the_heap();  // malloc serves the pool's smaller blocks
  PoolAllocator pool;
  if (used) live_in_allocator(pool, bytes);
  return live_in_allocator(pool, bytes);
}

BlockLife live_in_arena(std::size_t bytes) {
  std::optional<ArenaAllocator> arena;
  const Stretch prepare = watch([&] { arena.emplace(bytes); });
  BlockLife life = live_in_allocator(*arena, bytes);
  life.prepare = prepare;
  return life;
}

}  // namespace

std::vector<BlockSource> block_sources() {
  return {
      {"std::vector", true, live_in_vector},
      {"malloc", true, live_in_fresh_malloc},
      {"mmap, small pages", true,
       [](std::size_t bytes) { return live_in_mmap(bytes, MADV_NOHUGEPAGE); }},
      {"mmap, huge pages", true,
       [](std::size_t bytes) { return live_in_mmap(bytes, MADV_HUGEPAGE); }},
      {"pool", true, [](std::size_t bytes) { return live_in_pool(bytes, false); }},
      {"malloc, again", false, live_in_used_malloc},
      {"pool, again", false, [](std::size_t bytes) { return live_in_pool(bytes, true); }},
      {"arena", false, live_in_arena},
  };
}

std::string missing_huge_pages(std::size_t bytes) {
  void* pages = map_huge_pages(bytes);
  if (pages == nullptr) {
    return std::string(std::strerror(errno)) +
           "; vm.nr_hugepages says how many the system sets apart";
  }
  munmap(pages, whole_huge_pages(bytes));
  return "";
}

BlockSource huge_page_source() {
  return {"mmap, MAP_HUGETLB", true, [](std::size_t bytes) {
            return live(
                bytes, [&] { return checked(map_huge_pages(bytes), bytes); },
                [&](void* block) { munmap(block, whole_huge_pages(bytes)); });
          }};
}

std::string_view chosen_word(std::string_view setting) {
  const std::size_t open = setting.find('[');
  const std::size_t close = setting.find(']', open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || close == std::string_view::npos) return {};
  return setting.substr(open + 1, close - open - 1);
}

std::string huge_page_setting() {
  std::ifstream in("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::string text(std::istreambuf_iterator<char>(in), {});
  return std::string(chosen_word(text));
}

}  // namespace baregrad::lab

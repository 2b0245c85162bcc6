// The system allocator, and the functions by which all allocators get memory from the system.
#include <atomic>
#include <cstdlib>
#include <string>

#include <sys/mman.h>

#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "core/alloc_internal.h"
#include "core/made_once.h"

namespace baregrad {
namespace detail {

void* map_pages(std::size_t length, std::size_t alignment) noexcept {
  const auto map = [](std::size_t bytes) -> char* {
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? nullptr : static_cast<char*>(pages);
  };
  const auto misfit = [alignment](char* pages) {
    return reinterpret_cast<std::uintptr_t>(pages) & (alignment - 1);
  };
  // The system places mappings next to each other, so after an aligned one the next is often
  // aligned.
  char* pages = map(length);
  if (pages == nullptr) return nullptr;
  if (misfit(pages) != 0) {
    munmap(pages, length);
    pages = map(length + alignment);
    if (pages == nullptr) return nullptr;
    const std::size_t excess = misfit(pages);
    const std::size_t front = excess == 0 ? 0 : alignment - excess;
    if (front != 0) munmap(pages, front);
    pages += front;
    munmap(pages + length, alignment - front);
  }
#if defined(MADV_HUGEPAGE)
  if (alignment >= kHugePage) madvise(pages, length, MADV_HUGEPAGE);
#endif
  return pages;
}

void unmap_pages(void* pages, std::size_t length) noexcept { munmap(pages, length); }

std::size_t block_footprint(std::size_t bytes) noexcept {
  if (bytes < kMapThreshold) return align_up(bytes, kAlignment);
  // Whole huge pages where that wastes at most an eighth: the tail then has one page fault.
  return align_up(bytes, bytes >= 8 * kHugePage ? kHugePage : kMapUnit);
}

void* acquire_block(std::size_t bytes) noexcept {
  const std::size_t footprint = block_footprint(bytes);
  if (bytes >= kMapThreshold) return map_pages(footprint, kHugePage);
  void* block = nullptr;
  return posix_memalign(&block, kAlignment, kAsan ? bytes : footprint) == 0 ? block : nullptr;
}

void release_block(void* block, std::size_t bytes) noexcept {
  if (bytes >= kMapThreshold) {
    unmap_pages(block, block_footprint(bytes));
  } else {
    std::free(block);
  }
}

void throw_out_of_memory(std::string_view allocator, std::size_t requested, std::size_t live,
                         std::string_view why) {
  std::string message = "allocate: out of memory: the " + std::string(allocator) +
                        " allocator was asked for " + std::to_string(requested) + " bytes with " +
                        std::to_string(live) + " bytes live";
  if (!why.empty()) message.append("; ").append(why);
  throw OutOfMemory(message, requested, live);
}

}  // namespace detail

namespace {

using std::memory_order_relaxed;

class SystemAllocator final : public Allocator {
 public:
  void* allocate(std::size_t bytes) override {
    const std::size_t size = bytes == 0 ? 1 : bytes;
    void* block = size > detail::kMaxRequest ? nullptr : detail::acquire_block(size);
    if (block == nullptr) {
      detail::throw_out_of_memory(name(), bytes, live_.load(memory_order_relaxed), "");
    }
    detail::raise_to(peak_, live_.fetch_add(bytes, memory_order_relaxed) + bytes);
    reserved_.fetch_add(detail::block_footprint(size), memory_order_relaxed);
    allocations_.fetch_add(1, memory_order_relaxed);
    return block;
  }

  void deallocate(void* block, std::size_t bytes) noexcept override {
    if (block == nullptr) return;
    const std::size_t size = bytes == 0 ? 1 : bytes;
    // Counters first: a block whose memory is free again must not count as live.
    live_.fetch_sub(bytes, memory_order_relaxed);
    reserved_.fetch_sub(detail::block_footprint(size), memory_order_relaxed);
    detail::release_block(block, size);
  }

  AllocatorStats stats() const noexcept override {
    AllocatorStats stats;
    stats.live_bytes = live_.load(memory_order_relaxed);
    stats.peak_bytes = peak_.load(memory_order_relaxed);
    stats.reserved_bytes = reserved_.load(memory_order_relaxed);
    stats.allocations = allocations_.load(memory_order_relaxed);
    stats.system_allocations = stats.allocations;
    return stats;
  }

  void reset_peak() noexcept override {
    peak_.store(live_.load(memory_order_relaxed), memory_order_relaxed);
  }

  std::string_view name() const noexcept override { return "system"; }

 private:
  std::atomic<std::size_t> live_{0};
  std::atomic<std::size_t> peak_{0};
  std::atomic<std::size_t> reserved_{0};
  std::atomic<std::uint64_t> allocations_{0};
};

constinit Eternal<SystemAllocator> g_system_allocator;

}  // namespace

Allocator::~Allocator() = default;

Allocator& system_allocator() { return g_system_allocator.value; }

}  // namespace baregrad

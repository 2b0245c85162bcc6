// The arena: a bump pointer in one prefaulted region.
//
// One bit per 64-byte granule marks the last granule of each live block, in a bitmap with summary
// levels. Its highest set bit is the end of the topmost live block. It is found in one step per
// level (five for 64 GiB), however many dead blocks are above it. So the pointer is always exactly
// there, and "is a block beyond this mark still live" is one exact comparison, without headers or
// counts per block or per mark.
#include <array>
#include <bit>
#include <cerrno>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "baregrad/allocator.h"
#include "baregrad/error.h"
#include "core/alloc_internal.h"
#include "core/fork.h"

namespace baregrad {
namespace {

/// A set of small integers with constant-time access to the greatest member.
class BitTree {
 public:
  explicit BitTree(std::size_t size) {
    std::size_t words = 0;
    do {
      size = ceil_div(size, 64);
      begin_[levels_++] = words;
      words += size;
    } while (size > 1);
    words_.assign(words, 0);
  }

  void insert(std::size_t index) noexcept {
    for (int level = 0; level < levels_; ++level, index /= 64) {
      std::uint64_t& word = words_[begin_[level] + index / 64];
      const bool summarised = word != 0;
      word |= std::uint64_t{1} << (index % 64);
      if (summarised) return;
    }
  }

  void erase(std::size_t index) noexcept {
    for (int level = 0; level < levels_; ++level, index /= 64) {
      std::uint64_t& word = words_[begin_[level] + index / 64];
      word &= ~(std::uint64_t{1} << (index % 64));
      if (word != 0) return;
    }
  }

  /// One more than the greatest member; 0 when empty.
  std::size_t end() const noexcept {
    std::size_t index = 0;
    for (int level = levels_ - 1; level >= 0; --level) {
      const std::uint64_t word = words_[begin_[level] + index];
      if (word == 0) return 0;
      index = index * 64 + 63 - static_cast<std::size_t>(std::countl_zero(word));
    }
    return index + 1;
  }

 private:
  std::vector<std::uint64_t> words_;
  std::array<std::size_t, 8> begin_{};
  int levels_ = 0;
};

bool prefault(char* region, std::size_t length) noexcept {
#if defined(MADV_POPULATE_WRITE)
  if (madvise(region, length, MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;
#endif
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (std::size_t offset = 0; offset < length; offset += page) {
    *static_cast<volatile char*>(region + offset) = 0;
  }
  return true;
}

}  // namespace

struct ArenaAllocator::Impl final : detail::ForkParticipant {
  explicit Impl(std::size_t bytes)
      : capacity(align_up(bytes, kAlignment)),
        length(align_up(capacity + (capacity == 0), detail::kMapUnit)),
        ends(length / kAlignment) {
    region = static_cast<char*>(detail::map_pages(
        length, length >= detail::kHugePage ? detail::kHugePage : detail::kMapUnit));
    if (region == nullptr) return;
    if (!prefault(region, length)) {
      detail::unmap_pages(region, length);
      region = nullptr;
      return;
    }
    detail::poison(region, length);
  }

  ~Impl() {
    if (region == nullptr) return;
    detail::unpoison(region, length);
    detail::unmap_pages(region, length);
  }

  void before_fork() noexcept override { lock.lock(); }
  void after_fork(bool) noexcept override { lock.unlock(); }

  const std::size_t capacity;
  const std::size_t length;
  char* region = nullptr;

  mutable detail::SpinLock lock;
  BitTree ends;  // last granules of live blocks
  std::size_t used = 0;
  std::size_t live = 0;
  std::size_t peak = 0;
  std::uint64_t allocations = 0;
};

ArenaAllocator::ArenaAllocator(std::size_t capacity) {
  // The system would grant more than the machine has, and kill the process when it is touched.
  const auto memory = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (capacity < memory && capacity <= detail::kMaxRequest) {
    try {
      impl_ = std::make_unique<Impl>(capacity);
    } catch (const std::bad_alloc&) {
      impl_.reset();
    }
  }
  if (impl_ == nullptr || impl_->region == nullptr) {
    detail::throw_out_of_memory("arena", capacity, 0, "its region could not be reserved");
  }
  detail::add_fork_participant(*impl_);
}

ArenaAllocator::~ArenaAllocator() { detail::remove_fork_participant(*impl_); }

void* ArenaAllocator::allocate(std::size_t bytes) {
  Impl& arena = *impl_;
  arena.lock.lock();
  const std::size_t room = arena.capacity - arena.used;
  if (bytes > room || room == 0) {
    const std::size_t live = arena.live;
    arena.lock.unlock();
    detail::throw_out_of_memory(
        name(), bytes, live,
        std::to_string(room) + " of its " + std::to_string(arena.capacity) + " bytes are left");
  }
  char* block = arena.region + arena.used;
  // A block of no bytes takes a granule too, so that its address is unique.
  arena.used += align_up(bytes + (bytes == 0), kAlignment);
  arena.ends.insert(arena.used / kAlignment - 1);
  arena.live += bytes;
  if (arena.live > arena.peak) arena.peak = arena.live;
  ++arena.allocations;
  arena.lock.unlock();
  detail::unpoison(block, bytes);
  return block;
}

void ArenaAllocator::deallocate(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  Impl& arena = *impl_;
  const std::size_t size = align_up(bytes + (bytes == 0), kAlignment);
  const std::size_t end = static_cast<std::size_t>(static_cast<char*>(block) - arena.region) + size;
  detail::poison(block, size);
  std::lock_guard guard(arena.lock);
  arena.ends.erase(end / kAlignment - 1);
  if (end == arena.used) arena.used = arena.ends.end() * kAlignment;
  arena.live -= bytes;
}

AllocatorStats ArenaAllocator::stats() const noexcept {
  AllocatorStats stats;
  std::lock_guard guard(impl_->lock);
  stats.live_bytes = impl_->live;
  stats.peak_bytes = impl_->peak;
  stats.reserved_bytes = impl_->length;
  stats.allocations = impl_->allocations;
  stats.system_allocations = 1;
  return stats;
}

void ArenaAllocator::reset_peak() noexcept {
  std::lock_guard guard(impl_->lock);
  impl_->peak = impl_->live;
}

ArenaAllocator::Checkpoint ArenaAllocator::checkpoint() const noexcept { return {used()}; }

void ArenaAllocator::rewind(Checkpoint mark) {
  const std::size_t now = used();
  if (now <= mark.used) return;
  throw ValueError(
      "rewind: the arena still has live blocks beyond the checkpoint: the mark is at " +
      std::to_string(mark.used) + ", the topmost live block ends at " + std::to_string(now) +
      "; give them back first");
}

std::size_t ArenaAllocator::capacity() const noexcept { return impl_->capacity; }

std::size_t ArenaAllocator::used() const noexcept {
  std::lock_guard guard(impl_->lock);
  return impl_->used;
}

}  // namespace baregrad

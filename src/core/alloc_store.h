// The caching allocator's shared store: size classes, slabs of small blocks, large blocks. It knows
// nothing of the threads' caches.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

#include "baregrad/allocator.h"
#include "core/alloc_internal.h"

namespace baregrad::detail {

inline constexpr std::size_t kMaxSlabBlock = 4096;
inline constexpr std::size_t kSlabBytes = kMapUnit;
/// Under ASan, every block is followed by at least this many poisoned bytes.
inline constexpr std::size_t kRedzone = kAsan ? kAlignment : 0;

struct SizeClass {
  std::size_t index;
  std::size_t bytes;
};

/// The smallest class that holds `bytes`.
constexpr SizeClass class_of_bytes(std::size_t bytes) {
  const std::size_t last = bytes - (bytes != 0);
  if (last < 1024) return {last / 64, (last / 64 + 1) * 64};
  const auto exponent = static_cast<std::size_t>(std::bit_width(last)) - 1;
  const std::size_t shift = exponent - 3;
  const std::size_t step = last >> shift;  // 8 to 15
  return {16 + (exponent - 10) * 8 + (step - 8), (step + 1) << shift};
}

constexpr SizeClass class_of_request(std::size_t bytes) { return class_of_bytes(bytes + kRedzone); }

inline constexpr std::size_t kSlabClasses = class_of_bytes(kMaxSlabBlock).index + 1;

struct Slab;

struct SlabList {
  Slab* head = nullptr;

  void push(Slab* slab) noexcept;
  void remove(Slab* slab) noexcept;
};

/// Thread-safe. There is one lock, which is never held while memory is taken from or returned to
/// the system. Blocks in the store are poisoned for ASan over their whole length.
class BlockStore {
 public:
  explicit BlockStore(std::size_t limit_bytes) : limit(limit_bytes) {}
  ~BlockStore() { release_cached(); }
  BlockStore(const BlockStore&) = delete;
  BlockStore& operator=(const BlockStore&) = delete;

  /// Puts up to `wanted` blocks of a class into `out` (at most one of a large class) and returns
  /// how many. May throw std::bad_alloc, with nothing taken.
  std::size_t take(SizeClass size, void** out, std::size_t wanted);
  void put_back(void* const* blocks, std::size_t count, std::size_t class_index) noexcept;
  /// Adds blocks of this class to the store; false when the limit or the system forbids it.
  bool grow(SizeClass size) noexcept;
  /// Returns all free slabs and blocks to the system; returns how many bytes that was.
  std::size_t release_cached() noexcept;

  std::size_t reserved() const noexcept;
  std::uint64_t system_allocations() const noexcept;

  void before_fork() noexcept { mutex_.lock(); }
  void after_fork() noexcept { mutex_.unlock(); }

  std::atomic<std::size_t> limit;

 private:
  using FreeBlocks = std::multimap<std::size_t, void*>;

  bool add_slabs(std::size_t bytes) noexcept;
  bool add_large(std::size_t bytes) noexcept;
  bool reserve(std::size_t bytes) noexcept;
  void unreserve(std::size_t bytes) noexcept;

  mutable std::mutex mutex_;
  std::array<SlabList, kSlabClasses> partial_;
  SlabList empty_;
  FreeBlocks free_large_;
  // The node of a block in free_large_ is kept here while the block is in use, so that giving it
  // back cannot fail.
  std::unordered_map<void*, FreeBlocks::node_type> out_large_;
  std::size_t slab_bytes_ = 0;
  std::size_t reserved_ = 0;
  std::uint64_t system_allocations_ = 0;
};

}  // namespace baregrad::detail

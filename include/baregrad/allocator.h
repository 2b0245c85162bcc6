// One door to memory: every byte of tensor data comes from an Allocator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "baregrad/export.h"

namespace baregrad {

/// Every block starts on such a boundary.
inline constexpr std::size_t kAlignment = 64;

struct AllocatorStats {
  std::size_t live_bytes = 0;            ///< handed out and not yet given back, as asked for
  std::size_t peak_bytes = 0;            ///< the greatest live_bytes since reset_peak()
  std::size_t reserved_bytes = 0;        ///< held from the system, live or cached
  std::uint64_t allocations = 0;         ///< calls of allocate() that succeeded
  std::uint64_t system_allocations = 0;  ///< times the system was asked for memory
};

/// Thread-safe. allocate() throws OutOfMemory and leaves the allocator usable.
class BAREGRAD_API Allocator {
 public:
  Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;
  virtual ~Allocator();

  /// A block of at least `bytes` bytes (0 is allowed and gives a valid unique or null pointer),
  /// aligned to kAlignment, contents undefined.
  [[nodiscard]] virtual void* allocate(std::size_t bytes) = 0;
  /// Gives back a block, on any thread; `bytes` is what it was asked for with. Null is ignored.
  virtual void deallocate(void* block, std::size_t bytes) noexcept = 0;
  virtual AllocatorStats stats() const noexcept = 0;
  virtual void reset_peak() noexcept = 0;
  virtual std::string_view name() const noexcept = 0;
  /// Returns cached memory to the system; how many bytes that was.
  virtual std::size_t trim() noexcept { return 0; }
};

/// Straight from the system, nothing kept. Process lifetime, never destroyed.
BAREGRAD_API Allocator& system_allocator();

/// Size classes with per-thread caches in front of a shared store; freed blocks are kept for reuse.
/// Usable in a forked child. The peak is exact while one thread allocates; with more it may be off
/// by 16 KiB for each of them, the price of counters that cost no locked instruction.
class BAREGRAD_API PoolAllocator : public Allocator {
 public:
  /// `limit`: the most bytes it may hold from the system, 0 for no limit.
  explicit PoolAllocator(std::size_t limit = 0);
  /// Blocks that are still live then stay readable and are never reclaimed.
  ~PoolAllocator() override;

  void* allocate(std::size_t bytes) override;
  void deallocate(void* block, std::size_t bytes) noexcept override;
  AllocatorStats stats() const noexcept override;
  void reset_peak() noexcept override;
  std::string_view name() const noexcept override { return "pool"; }
  std::size_t trim() noexcept override;

  void set_limit(std::size_t bytes) noexcept;
  std::size_t limit() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The process-wide pool, the default for tensors. Never destroyed.
BAREGRAD_API PoolAllocator& pool_allocator();

/// A bump pointer in one prefaulted region. It always stands at the end of the topmost live block:
/// giving that one back moves it down past all dead blocks below; room under a live block waits.
class BAREGRAD_API ArenaAllocator : public Allocator {
 public:
  /// Reserves and touches `capacity` bytes now, so that use never faults.
  explicit ArenaAllocator(std::size_t capacity);
  ~ArenaAllocator() override;

  void* allocate(std::size_t bytes) override;
  void deallocate(void* block, std::size_t bytes) noexcept override;
  AllocatorStats stats() const noexcept override;
  void reset_peak() noexcept override;
  std::string_view name() const noexcept override { return "arena"; }

  /// A position to come back to.
  struct Checkpoint {
    std::size_t used = 0;
  };
  Checkpoint checkpoint() const noexcept;
  /// Makes sure, in O(1), that all room beyond `mark` is free again. Throws ValueError when a live
  /// block lies there (its owner would be left with memory that is handed out again). used() may
  /// end up below the mark where blocks older than it were given back as well.
  void rewind(Checkpoint mark);
  std::size_t capacity() const noexcept;
  std::size_t used() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Tests only: fails allocations on purpose, forwards the rest.
class BAREGRAD_API FaultInjectingAllocator : public Allocator {
 public:
  explicit FaultInjectingAllocator(Allocator& inner);
  ~FaultInjectingAllocator() override;

  /// Fails the allocation with index `index` (0 is the next one); with `and_after`, all later too.
  void fail_at(std::uint64_t index, bool and_after) noexcept;
  void never_fail() noexcept;
  /// Allocations asked for since the last fail_at()/never_fail().
  std::uint64_t attempts() const noexcept;

  void* allocate(std::size_t bytes) override;
  void deallocate(void* block, std::size_t bytes) noexcept override;
  AllocatorStats stats() const noexcept override;
  void reset_peak() noexcept override;
  std::string_view name() const noexcept override { return "fault-injecting"; }
  std::size_t trim() noexcept override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The allocator new tensors of this thread use: the innermost AllocatorScope, else the process
/// default (BAREGRAD_ALLOC=system|pool|arena[:MiB], pool when unset). The variable is read once, on
/// first use; a value that names no allocator gives a ValueError here, then and on every later use.
[[nodiscard]] BAREGRAD_API Allocator& current_allocator();
/// Parses what BAREGRAD_ALLOC may hold; throws ValueError for anything else. The same name always
/// gives the same allocator, which is never destroyed.
[[nodiscard]] BAREGRAD_API Allocator& allocator_by_name(std::string_view name);

/// While alive, new tensors of this thread come from `allocator`.
class [[nodiscard]] BAREGRAD_API AllocatorScope {
 public:
  [[nodiscard]] explicit AllocatorScope(Allocator& allocator) noexcept;
  ~AllocatorScope();
  AllocatorScope(const AllocatorScope&) = delete;
  AllocatorScope& operator=(const AllocatorScope&) = delete;

 private:
  Allocator* previous_;
};

}  // namespace baregrad

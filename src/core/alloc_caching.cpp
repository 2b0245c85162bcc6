// The caching allocator (PoolAllocator): per-thread caches in front of a shared store of slabs and
// large blocks.
//
// Locks, outermost first: CachingAllocatorRegistry::mutex, CachingAllocator::caches_mutex_, a cache
// (entered by its owner or claimed by another thread), the store's own.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "baregrad/allocator.h"
#include "core/alloc_internal.h"
#include "core/alloc_store.h"
#include "core/fork.h"
#include "core/made_once.h"

namespace baregrad {
namespace {

using detail::class_of_bytes;
using detail::class_of_request;
using detail::SizeClass;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

constexpr std::size_t kMaxCachedBlock = std::size_t{64} << 10;
/// The most that one thread keeps; beyond it, everything goes back to the store.
constexpr std::size_t kThreadCacheBytes = std::size_t{2} << 20;
constexpr std::size_t kCachedClasses = class_of_bytes(kMaxCachedBlock).index + 1;
constexpr std::size_t kSlots = 32;

/// How many blocks of each class a thread keeps: up to 256 KiB worth, but 4 to kSlots of them.
constexpr auto kSlotsOfClass = [] {
  std::array<std::uint8_t, kCachedClasses> slots{};
  for (std::size_t bytes = 64; bytes <= kMaxCachedBlock; bytes += 64) {
    slots[class_of_bytes(bytes).index] =
        static_cast<std::uint8_t>(std::clamp<std::size_t>((256u << 10) / bytes, 4, kSlots));
  }
  return slots;
}();

/// Lets the owner of a cache enter with two plain moves. Other threads, which rarely enter, pay for
/// the ordering: the kernel runs a memory barrier on every thread of the process for them. Where
/// the kernel does not support that (and under TSan, which does not know it), owners pay as well.
class AsymmetricBarrier {
 public:
  static bool available() noexcept { return available_.load(memory_order_relaxed); }

  /// Also needed in a forked child, before it has a second thread.
  static void enroll() noexcept {
#if defined(__linux__) && !defined(__SANITIZE_THREAD__)
    available_.store(call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED), memory_order_relaxed);
#endif
  }
  static void run() noexcept {
#if defined(__linux__) && !defined(__SANITIZE_THREAD__)
    if (available()) call(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
#endif
  }

 private:
#if defined(__linux__)
  static bool call(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0) == 0; }
#endif
  static inline constinit std::atomic<bool> available_{false};
};

/// Its address identifies the thread.
BAREGRAD_FAST_TLS char t_identity = 0;

/// One thread's blocks of one allocator, and its share of the allocator's statistics. Counters are
/// written by the owner alone (plain moves, no locked instruction) and read by any thread.
struct alignas(64) ThreadCache {
  std::atomic<bool> busy{false};     // the owner is inside
  std::atomic<bool> claimed{false};  // another thread is, or wants to be
  const char* const owner = &t_identity;
  std::size_t cached_bytes = 0;

  std::atomic<std::int64_t> live{0};       // allocated minus freed here; may be negative
  std::atomic<std::int64_t> high{0};       // greatest `live` since it was last published
  std::atomic<std::int64_t> published{0};  // the part of `live` that is in total_
  std::atomic<std::uint64_t> allocations{0};

  std::array<std::uint8_t, kCachedClasses> count{};
  std::array<std::array<void*, kSlots>, kCachedClasses> slot;

  /// Never waits: while the cache is claimed, its owner uses the store instead.
  bool try_enter() noexcept {
    if (AsymmetricBarrier::available()) [[likely]] {
      busy.store(true, memory_order_relaxed);
      std::atomic_signal_fence(memory_order_seq_cst);
    } else {
      busy.store(true, memory_order_seq_cst);
    }
    if (claimed.load(memory_order_seq_cst)) [[unlikely]] {
      leave();
      return false;
    }
    return true;
  }
  void leave() noexcept { busy.store(false, memory_order_release); }
};

/// The allocator that this thread used last, and its cache there. Ids are never reused.
struct RecentCache {
  std::uint64_t allocator_id;
  ThreadCache* cache;
};
BAREGRAD_FAST_TLS RecentCache t_recent{0, nullptr};
BAREGRAD_FAST_TLS bool t_exiting = false;

class CachingAllocator {
 public:
  explicit CachingAllocator(std::size_t limit_bytes);
  ~CachingAllocator();

  void* allocate(std::size_t bytes);
  void deallocate(void* block, std::size_t bytes) noexcept;
  std::size_t trim() noexcept;
  AllocatorStats stats() const noexcept;
  void reset_peak() noexcept;
  [[noreturn, gnu::noinline]] void refuse(std::size_t bytes) const {
    detail::throw_out_of_memory("pool", bytes, stats().live_bytes, "");
  }

  void before_fork() noexcept;
  void after_fork(bool in_child) noexcept;
  void detach_exiting(ThreadCache& cache) noexcept;

  std::atomic<std::size_t>& limit() noexcept { return store_.limit; }

 private:
  /// The change of a thread's share of `live` after which it is published.
  static constexpr std::int64_t kUnpublished = 16 << 10;
  void count_allocation(ThreadCache* cache, std::size_t bytes) noexcept;
  void count_deallocation(ThreadCache* cache, std::size_t bytes) noexcept;
  [[gnu::noinline]] void try_publish(ThreadCache& cache) noexcept;
  void publish(ThreadCache& cache) noexcept;  // the cache entered or claimed

  ThreadCache* this_threads_cache() noexcept;
  [[gnu::noinline]] ThreadCache* find_or_attach() noexcept;
  void claim_caches() noexcept;              // holding caches_mutex_
  void unclaim_caches() noexcept;            // holding caches_mutex_
  void detach(ThreadCache& cache) noexcept;  // holding caches_mutex_, the owner not inside
  void drain(ThreadCache& cache) noexcept;   // the cache entered or claimed

  // Out of line, so that the path of every tensor stays short.
  [[gnu::noinline]] void* allocate_slow(ThreadCache* cache, std::size_t request, SizeClass size);
  [[gnu::noinline]] void deallocate_slow(ThreadCache* cache, void* block, SizeClass size) noexcept;

  std::uint64_t id_ = 0;
  std::atomic<std::int64_t> total_{0};  // published live bytes
  std::atomic<std::int64_t> peak_{0};
  std::atomic<std::uint64_t> uncached_allocations_{0};  // of threads without a cache, or ended

  mutable std::mutex caches_mutex_;
  std::vector<ThreadCache*> caches_;

  detail::BlockStore store_;
};

/// Which allocators exist, for threads that exit and processes that fork.
struct CachingAllocatorRegistry final : detail::ForkParticipant {
  std::mutex mutex;
  std::map<std::uint64_t, CachingAllocator*> allocators;
  std::uint64_t last_id = 0;

  CachingAllocatorRegistry() {
    AsymmetricBarrier::enroll();
    detail::add_fork_participant(*this);
  }
  ~CachingAllocatorRegistry() { detail::remove_fork_participant(*this); }
  CachingAllocatorRegistry(const CachingAllocatorRegistry&) = delete;
  CachingAllocatorRegistry& operator=(const CachingAllocatorRegistry&) = delete;
  void before_fork() noexcept override {
    mutex.lock();
    for (auto& [id, allocator] : allocators) allocator->before_fork();
  }
  void after_fork(bool in_child) noexcept override {
    if (in_child) AsymmetricBarrier::enroll();
    for (auto& [id, allocator] : allocators) allocator->after_fork(in_child);
    mutex.unlock();
  }

  static CachingAllocatorRegistry& instance() { return registry_.get(); }

 private:
  static constinit MadeOnce<CachingAllocatorRegistry> registry_;
};

constinit MadeOnce<CachingAllocatorRegistry> CachingAllocatorRegistry::registry_;

/// All caches of one thread; destroyed when the thread exits.
struct OwnCaches {
  std::vector<RecentCache> entries;

  ~OwnCaches() {
    // Tensors that are freed later on this thread go straight to the store.
    t_exiting = true;
    t_recent = {0, nullptr};
    CachingAllocatorRegistry& registry = CachingAllocatorRegistry::instance();
    std::lock_guard lock(registry.mutex);
    for (const RecentCache& entry : entries) {
      const auto found = registry.allocators.find(entry.allocator_id);
      // An allocator that was destroyed before has destroyed its caches too.
      if (found != registry.allocators.end()) found->second->detach_exiting(*entry.cache);
    }
  }

  void forget_dead_allocators() {
    CachingAllocatorRegistry& registry = CachingAllocatorRegistry::instance();
    std::lock_guard lock(registry.mutex);
    std::erase_if(entries, [&](const RecentCache& entry) {
      return registry.allocators.find(entry.allocator_id) == registry.allocators.end();
    });
  }
};
thread_local OwnCaches t_own_caches;

CachingAllocator::CachingAllocator(std::size_t limit_bytes) : store_(limit_bytes) {
  CachingAllocatorRegistry& registry = CachingAllocatorRegistry::instance();
  std::lock_guard lock(registry.mutex);
  id_ = registry.last_id + 1;
  registry.allocators.emplace(id_, this);
  registry.last_id = id_;
}

CachingAllocator::~CachingAllocator() {
  {
    std::lock_guard lock(CachingAllocatorRegistry::instance().mutex);
    CachingAllocatorRegistry::instance().allocators.erase(id_);
  }
  std::lock_guard lock(caches_mutex_);
  claim_caches();
  while (!caches_.empty()) detach(*caches_.back());
}

// Statistics. `total_` is the sum of all published shares. While only one thread allocates, total_
// plus its unpublished part is the exact number of live bytes, and the peak is exact too.

inline void CachingAllocator::count_allocation(ThreadCache* cache, std::size_t bytes) noexcept {
  const auto change = static_cast<std::int64_t>(bytes);
  if (cache == nullptr) [[unlikely]] {
    detail::raise_to(peak_, total_.fetch_add(change, memory_order_relaxed) + change);
    uncached_allocations_.fetch_add(1, memory_order_relaxed);
    return;
  }
  const std::int64_t live = cache->live.load(memory_order_relaxed) + change;
  cache->live.store(live, memory_order_relaxed);
  cache->allocations.store(cache->allocations.load(memory_order_relaxed) + 1, memory_order_relaxed);
  if (live > cache->high.load(memory_order_relaxed)) cache->high.store(live, memory_order_relaxed);
  if (live - cache->published.load(memory_order_relaxed) > kUnpublished) try_publish(*cache);
}

inline void CachingAllocator::count_deallocation(ThreadCache* cache, std::size_t bytes) noexcept {
  const auto change = static_cast<std::int64_t>(bytes);
  if (cache == nullptr) [[unlikely]] {
    total_.fetch_sub(change, memory_order_relaxed);
    return;
  }
  const std::int64_t live = cache->live.load(memory_order_relaxed) - change;
  cache->live.store(live, memory_order_relaxed);
  if (cache->published.load(memory_order_relaxed) - live > kUnpublished) try_publish(*cache);
}

/// Inside the cache, so that a fork never copies a half-published share. While the cache is
/// claimed, publishing can wait: the next allocation tries again.
void CachingAllocator::try_publish(ThreadCache& cache) noexcept {
  if (!cache.try_enter()) return;
  publish(cache);
  cache.leave();
}

void CachingAllocator::publish(ThreadCache& cache) noexcept {
  const std::int64_t live = cache.live.load(memory_order_relaxed);
  const std::int64_t high = cache.high.load(memory_order_relaxed);
  const std::int64_t published = cache.published.load(memory_order_relaxed);
  const std::int64_t before = total_.fetch_add(live - published, memory_order_relaxed);
  detail::raise_to(peak_, before + high - published);
  cache.published.store(live, memory_order_relaxed);
  cache.high.store(live, memory_order_relaxed);
}

AllocatorStats CachingAllocator::stats() const noexcept {
  AllocatorStats stats;
  std::lock_guard caches_lock(caches_mutex_);
  std::int64_t live = total_.load(memory_order_relaxed);
  std::int64_t high = live;
  stats.allocations = uncached_allocations_.load(memory_order_relaxed);
  for (const ThreadCache* cache : caches_) {
    const std::int64_t published = cache->published.load(memory_order_relaxed);
    const std::int64_t own = cache->live.load(memory_order_relaxed);
    live += own - published;
    high += std::max(own, cache->high.load(memory_order_relaxed)) - published;
    stats.allocations += cache->allocations.load(memory_order_relaxed);
  }
  high = std::max(high, peak_.load(memory_order_relaxed));
  // Negative only while another thread is between two of these counters.
  stats.live_bytes = static_cast<std::size_t>(std::max<std::int64_t>(live, 0));
  stats.peak_bytes = static_cast<std::size_t>(std::max<std::int64_t>(high, 0));
  stats.reserved_bytes = store_.reserved();
  stats.system_allocations = store_.system_allocations();
  return stats;
}

void CachingAllocator::reset_peak() noexcept {
  std::lock_guard lock(caches_mutex_);
  peak_.store(0, memory_order_relaxed);
  for (ThreadCache* cache : caches_) {
    cache->high.store(cache->live.load(memory_order_relaxed), memory_order_relaxed);
  }
}

// Thread caches.

inline ThreadCache* CachingAllocator::this_threads_cache() noexcept {
  return t_recent.allocator_id == id_ ? t_recent.cache : find_or_attach();
}

ThreadCache* CachingAllocator::find_or_attach() noexcept {
  if (t_exiting) return nullptr;
  auto& entries = t_own_caches.entries;
  for (const RecentCache& entry : entries) {
    if (entry.allocator_id == id_) {
      t_recent = entry;
      return entry.cache;
    }
  }
  try {
    t_own_caches.forget_dead_allocators();
    entries.reserve(entries.size() + 1);
    auto cache = std::make_unique<ThreadCache>();
    {
      std::lock_guard lock(caches_mutex_);
      caches_.push_back(cache.get());
    }
    entries.push_back({id_, cache.release()});
  } catch (const std::bad_alloc&) {
    return nullptr;  // a thread without a cache uses the store
  }
  t_recent = entries.back();
  return t_recent.cache;
}

void CachingAllocator::claim_caches() noexcept {
  for (ThreadCache* cache : caches_) cache->claimed.store(true, memory_order_seq_cst);
  AsymmetricBarrier::run();
  // Either an owner saw the claim, or its entry is visible here and it soon leaves.
  for (ThreadCache* cache : caches_) {
    while (cache->busy.load(memory_order_seq_cst)) std::this_thread::yield();
  }
}

void CachingAllocator::unclaim_caches() noexcept {
  for (ThreadCache* cache : caches_) cache->claimed.store(false, memory_order_release);
}

void CachingAllocator::detach(ThreadCache& cache) noexcept {
  drain(cache);
  publish(cache);
  uncached_allocations_.fetch_add(cache.allocations.load(memory_order_relaxed),
                                  memory_order_relaxed);
  std::erase(caches_, &cache);
  delete &cache;
}

void CachingAllocator::detach_exiting(ThreadCache& cache) noexcept {
  std::lock_guard lock(caches_mutex_);
  detach(cache);
}

void CachingAllocator::drain(ThreadCache& cache) noexcept {
  for (std::size_t index = 0; index < kCachedClasses; ++index) {
    if (cache.count[index] == 0) continue;
    store_.put_back(cache.slot[index].data(), cache.count[index], index);
    cache.count[index] = 0;
  }
  cache.cached_bytes = 0;
}

void CachingAllocator::before_fork() noexcept {
  caches_mutex_.lock();
  claim_caches();
  store_.before_fork();
}

void CachingAllocator::after_fork(bool in_child) noexcept {
  store_.after_fork();
  unclaim_caches();
  if (in_child) {
    // Only the forking thread exists in the child; the caches of the others would be lost.
    for (std::size_t i = caches_.size(); i-- > 0;) {
      if (caches_[i]->owner != &t_identity) detach(*caches_[i]);
    }
  }
  caches_mutex_.unlock();
}

// Blocks.

inline void* CachingAllocator::allocate(std::size_t bytes) {
  if (bytes > detail::kMaxRequest) [[unlikely]] {
    refuse(bytes);
  }
  const SizeClass size = class_of_request(bytes);
  ThreadCache* cache = this_threads_cache();
  void* block = nullptr;
  if (size.index < kCachedClasses && cache != nullptr && cache->try_enter()) [[likely]] {
    if (const std::size_t count = cache->count[size.index]; count != 0) {
      block = cache->slot[size.index][count - 1];
      cache->count[size.index] = static_cast<std::uint8_t>(count - 1);
      cache->cached_bytes -= size.bytes;
    }
    cache->leave();
  }
  if (block == nullptr) block = allocate_slow(cache, bytes, size);
  count_allocation(cache, bytes);
  detail::unpoison(block, bytes);
  return block;
}

inline void CachingAllocator::deallocate(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  const SizeClass size = class_of_request(bytes);
  detail::poison(block, size.bytes);
  ThreadCache* cache = this_threads_cache();
  count_deallocation(cache, bytes);
  if (size.index < kCachedClasses && cache != nullptr && cache->try_enter()) [[likely]] {
    const std::size_t count = cache->count[size.index];
    const bool fits =
        count < kSlotsOfClass[size.index] && cache->cached_bytes + size.bytes <= kThreadCacheBytes;
    if (fits) [[likely]] {
      cache->slot[size.index][count] = block;
      cache->count[size.index] = static_cast<std::uint8_t>(count + 1);
      cache->cached_bytes += size.bytes;
    }
    cache->leave();
    if (fits) [[likely]]
      return;
  }
  deallocate_slow(cache, block, size);
}

void* CachingAllocator::allocate_slow(ThreadCache* cache, std::size_t request, SizeClass size) {
  // Small blocks come in batches; a large one is taken only when it is needed.
  const bool batched = size.index < detail::kSlabClasses && cache != nullptr;
  std::array<void*, kSlots / 2> batch;
  std::size_t taken = 0;
  try {
    bool trimmed = false;
    while ((taken = store_.take(size, batch.data(), batched ? batch.size() : 1)) == 0) {
      if (store_.grow(size)) continue;
      if (trimmed) break;
      trim();
      trimmed = true;
    }
  } catch (const std::bad_alloc&) {
    taken = 0;
  }
  if (taken == 0) {
    const std::size_t most = limit().load(memory_order_relaxed);
    detail::throw_out_of_memory(
        "pool", request, stats().live_bytes,
        most == 0 ? std::string() : "its limit is " + std::to_string(most) + " bytes");
  }
  void* block = batch[--taken];
  if (taken != 0 && cache != nullptr && cache->try_enter()) {
    auto& count = cache->count[size.index];
    for (; taken != 0 && count < kSlotsOfClass[size.index]; ++count) {
      cache->slot[size.index][count] = batch[--taken];
      cache->cached_bytes += size.bytes;
    }
    cache->leave();
  }
  if (taken != 0) store_.put_back(batch.data(), taken, size.index);
  return block;
}

void CachingAllocator::deallocate_slow(ThreadCache* cache, void* block, SizeClass size) noexcept {
  if (size.index < kCachedClasses && cache != nullptr && cache->try_enter()) {
    if (cache->cached_bytes + size.bytes > kThreadCacheBytes) {
      drain(*cache);
    } else {
      // The older half is given back: blocks freed last are still in the CPU's caches.
      auto& slots = cache->slot[size.index];
      const std::size_t count = cache->count[size.index];
      const std::size_t half = count / 2;
      store_.put_back(slots.data(), half, size.index);
      std::copy(slots.begin() + static_cast<std::ptrdiff_t>(half),
                slots.begin() + static_cast<std::ptrdiff_t>(count), slots.begin());
      cache->count[size.index] = static_cast<std::uint8_t>(count - half);
      cache->cached_bytes -= half * size.bytes;
    }
    cache->leave();
  }
  store_.put_back(&block, 1, size.index);
}

std::size_t CachingAllocator::trim() noexcept {
  {
    std::lock_guard lock(caches_mutex_);
    claim_caches();
    for (ThreadCache* cache : caches_) drain(*cache);
    unclaim_caches();
  }
  return store_.release_cached();
}

}  // namespace

struct PoolAllocator::Impl : CachingAllocator {
  using CachingAllocator::CachingAllocator;
};

PoolAllocator::PoolAllocator(std::size_t limit) : impl_(std::make_unique<Impl>(limit)) {}
PoolAllocator::~PoolAllocator() = default;

void* PoolAllocator::allocate(std::size_t bytes) { return impl_->allocate(bytes); }
void PoolAllocator::deallocate(void* block, std::size_t bytes) noexcept {
  impl_->deallocate(block, bytes);
}
AllocatorStats PoolAllocator::stats() const noexcept { return impl_->stats(); }
void PoolAllocator::reset_peak() noexcept { impl_->reset_peak(); }
std::size_t PoolAllocator::trim() noexcept { return impl_->trim(); }
void PoolAllocator::set_limit(std::size_t bytes) noexcept {
  impl_->limit().store(bytes, memory_order_relaxed);
}
std::size_t PoolAllocator::limit() const noexcept {
  return impl_->limit().load(memory_order_relaxed);
}

namespace {
constinit MadeOnce<PoolAllocator> g_pool_allocator;
}  // namespace

PoolAllocator& pool_allocator() { return g_pool_allocator.get(); }

}  // namespace baregrad

// The caching allocator's shared store.
//
// Sizes are rounded up to classes: steps of 64 bytes up to 1 KiB, then eight per doubling. Blocks
// up to 4 KiB are cut from 64 KiB slabs; larger ones come from the system one by one and are reused
// by best fit. No bookkeeping is stored in or next to a block, so a kernel that writes too far
// damages data, but never the store.
#include "core/alloc_store.h"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

namespace baregrad::detail {

/// 64 KiB of blocks of one class, aligned to its size, so that it is found from the address of a
/// block.
struct Slab {
  Slab* previous = nullptr;
  Slab* next = nullptr;
  std::uint32_t block_bytes = 0;
  std::uint32_t blocks = 0;
  std::uint32_t free_blocks = 0;
  std::array<std::uint64_t, kSlabBytes / kAlignment / 64> free_bits{};

  static Slab* of(void* block) {
    return reinterpret_cast<Slab*>(reinterpret_cast<std::uintptr_t>(block) & ~(kSlabBytes - 1));
  }
  inline char* first_block();

  void format(SizeClass size);
  std::size_t take(void** out, std::size_t wanted);
  void put(void* block);
};

constexpr std::size_t kSlabHeader = align_up(sizeof(Slab), kAlignment);

char* Slab::first_block() { return reinterpret_cast<char*>(this) + kSlabHeader; }

void Slab::format(SizeClass size) {
  block_bytes = static_cast<std::uint32_t>(size.bytes);
  blocks = free_blocks = static_cast<std::uint32_t>((kSlabBytes - kSlabHeader) / size.bytes);
  free_bits.fill(0);
  for (std::uint32_t block = 0; block < blocks; ++block) {
    free_bits[block / 64] |= std::uint64_t{1} << (block % 64);
  }
}

/// Lowest address first: no more memory is touched than needed.
std::size_t Slab::take(void** out, std::size_t wanted) {
  wanted = std::min<std::size_t>(wanted, free_blocks);
  free_blocks -= static_cast<std::uint32_t>(wanted);
  char* base = first_block();
  std::size_t taken = 0;
  for (std::size_t word = 0; taken < wanted; ++word, base += std::size_t{64} * block_bytes) {
    std::uint64_t bits = free_bits[word];
    for (; bits != 0 && taken < wanted; bits &= bits - 1) {
      out[taken++] = base + static_cast<std::size_t>(std::countr_zero(bits)) * block_bytes;
    }
    free_bits[word] = bits;
  }
  return taken;
}

void Slab::put(void* block) {
  const auto index =
      static_cast<std::size_t>(static_cast<char*>(block) - first_block()) / block_bytes;
  free_bits[index / 64] |= std::uint64_t{1} << (index % 64);
  ++free_blocks;
}

void SlabList::push(Slab* slab) noexcept {
  slab->previous = nullptr;
  slab->next = head;
  if (head != nullptr) head->previous = slab;
  head = slab;
}

void SlabList::remove(Slab* slab) noexcept {
  (slab->previous != nullptr ? slab->previous->next : head) = slab->next;
  if (slab->next != nullptr) slab->next->previous = slab->previous;
}

std::size_t BlockStore::take(SizeClass size, void** out, std::size_t wanted) {
  std::lock_guard lock(mutex_);
  if (size.index >= kSlabClasses) {
    const auto fit = free_large_.lower_bound(size.bytes);
    if (fit == free_large_.end() || fit->first > size.bytes + size.bytes / 8) return 0;
    *out = fit->second;
    auto& entry = out_large_[*out];
    entry = free_large_.extract(fit);
    return 1;
  }
  SlabList& partial = partial_[size.index];
  std::size_t taken = 0;
  while (taken < wanted) {
    Slab* slab = partial.head;
    if (slab == nullptr) {
      slab = empty_.head;
      if (slab == nullptr) break;
      empty_.remove(slab);
      slab->format(size);
      partial.push(slab);
    }
    taken += slab->take(out + taken, wanted - taken);
    if (slab->free_blocks == 0) partial.remove(slab);
  }
  return taken;
}

void BlockStore::put_back(void* const* blocks, std::size_t count,
                          std::size_t class_index) noexcept {
  std::lock_guard lock(mutex_);
  for (void* block : std::span(blocks, count)) {
    if (class_index >= kSlabClasses) {
      const auto out = out_large_.find(block);
      free_large_.insert(std::move(out->second));
      out_large_.erase(out);
      continue;
    }
    Slab* slab = Slab::of(block);
    const bool was_full = slab->free_blocks == 0;
    slab->put(block);
    if (was_full) partial_[class_index].push(slab);
    if (slab->free_blocks == slab->blocks) {
      partial_[class_index].remove(slab);
      empty_.push(slab);
    }
  }
}

bool BlockStore::reserve(std::size_t bytes) noexcept {
  const std::size_t most = limit.load(std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  if (most != 0 && (bytes > most || reserved_ > most - bytes)) return false;
  reserved_ += bytes;
  ++system_allocations_;
  return true;
}

void BlockStore::unreserve(std::size_t bytes) noexcept {
  std::lock_guard lock(mutex_);
  reserved_ -= bytes;
  --system_allocations_;
}

bool BlockStore::grow(SizeClass size) noexcept {
  if (size.index >= kSlabClasses) return add_large(size.bytes);
  bool many = false;
  {
    std::lock_guard lock(mutex_);
    many = slab_bytes_ >= kHugePage;
  }
  // A page fault costs as much as hundreds of small allocations: with many slabs, take a huge page.
  return (many && add_slabs(kHugePage)) || add_slabs(kSlabBytes);
}

bool BlockStore::add_slabs(std::size_t bytes) noexcept {
  if (!reserve(bytes)) return false;
  auto* memory = static_cast<char*>(map_pages(bytes, bytes));
  if (memory == nullptr) {
    unreserve(bytes);
    return false;
  }
  std::lock_guard lock(mutex_);
  slab_bytes_ += bytes;
  for (std::size_t offset = bytes; offset != 0;) {
    offset -= kSlabBytes;
    Slab* slab = new (memory + offset) Slab;
    poison(slab->first_block(), kSlabBytes - kSlabHeader);
    empty_.push(slab);
  }
  return true;
}

bool BlockStore::add_large(std::size_t bytes) noexcept {
  const std::size_t footprint = block_footprint(bytes);
  if (!reserve(footprint)) return false;
  void* block = acquire_block(bytes);
  if (block != nullptr) {
    poison(block, bytes);
    try {
      std::lock_guard lock(mutex_);
      free_large_.emplace(bytes, block);
      return true;
    } catch (const std::bad_alloc&) {
      unpoison(block, bytes);
      release_block(block, bytes);
    }
  }
  unreserve(footprint);
  return false;
}

std::size_t BlockStore::release_cached() noexcept {
  SlabList slabs;
  FreeBlocks blocks;
  std::size_t released = 0;
  {
    std::lock_guard lock(mutex_);
    std::swap(slabs, empty_);
    std::swap(blocks, free_large_);
    for (Slab* slab = slabs.head; slab != nullptr; slab = slab->next) released += kSlabBytes;
    slab_bytes_ -= released;
    for (const auto& [bytes, block] : blocks) released += block_footprint(bytes);
    reserved_ -= released;
  }
  while (Slab* slab = slabs.head) {
    slabs.remove(slab);
    unpoison(slab, kSlabBytes);
    unmap_pages(slab, kSlabBytes);
  }
  for (const auto& [bytes, block] : blocks) {
    unpoison(block, bytes);
    release_block(block, bytes);
  }
  return released;
}

std::size_t BlockStore::reserved() const noexcept {
  std::lock_guard lock(mutex_);
  return reserved_;
}

std::uint64_t BlockStore::system_allocations() const noexcept {
  std::lock_guard lock(mutex_);
  return system_allocations_;
}

}  // namespace baregrad::detail

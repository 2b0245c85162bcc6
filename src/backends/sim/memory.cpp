// First fit over a reserved range of addresses; free neighbours are joined.
#include "backends/sim/memory.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include <sys/mman.h>

namespace sim {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kLeastRange = std::size_t{1} << 24;
/// Blocks up to this size are overwritten when they come back; of larger ones the pages go back to
/// the operating system.
constexpr std::size_t kOverwritten = std::size_t{1} << 16;
/// NaN in every floating dtype, and an index out of range: reading undefined bytes shows.
constexpr int kUndefinedByte = 0xFF;

std::size_t rounded(std::size_t bytes) {
  return std::max((bytes + kAlignment - 1) & ~(kAlignment - 1), kAlignment);
}

char* reserve(std::size_t bytes, int protection) {
  void* range =
      mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return range == MAP_FAILED ? nullptr : static_cast<char*>(range);
}

}  // namespace

Memory::Memory(std::size_t limit) {
  for (std::size_t bytes = (limit + kPage - 1) & ~(kPage - 1); bytes >= kLeastRange; bytes /= 2) {
    char* addresses = reserve(bytes, PROT_NONE);
    char* real = addresses == nullptr ? nullptr : reserve(bytes, PROT_READ | PROT_WRITE);
    if (real != nullptr) {
      addresses_ = addresses;
      offset_ = real - addresses;
      limit_ = std::min(limit, bytes);
      free_.emplace(0, bytes);
      return;
    }
    if (addresses != nullptr) munmap(addresses, bytes);
  }
}

void* Memory::take(std::size_t bytes) {
  if (bytes > limit_) return nullptr;
  const std::size_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  if (size > limit_ - std::min(in_use_, limit_)) return nullptr;
  const auto found =
      std::find_if(free_.begin(), free_.end(), [&](const auto& b) { return b.second >= size; });
  if (found == free_.end()) return nullptr;
  const auto [start, room] = *found;
  free_.erase(found);
  if (room > size) free_.emplace(start + size, room - size);
  live_.emplace(start, size);
  in_use_ += size;
  return addresses_ + start;
}

void Memory::retire(void* block) {
  const std::lock_guard lock(mutex_);
  live_.erase(static_cast<std::size_t>(static_cast<char*>(block) - addresses_));
}

void Memory::give_back(void* block, std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  char* bytes_of_it = static_cast<char*>(real(block));
  if (size <= kOverwritten) {
    std::memset(bytes_of_it, kUndefinedByte, size);
  } else {
    const auto first = reinterpret_cast<std::uintptr_t>(bytes_of_it);
    const std::uintptr_t begin = (first + kPage - 1) & ~(kPage - 1);
    const std::uintptr_t end = (first + size) & ~(kPage - 1);
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  auto start = static_cast<std::size_t>(static_cast<char*>(block) - addresses_);
  std::size_t room = size;
  const std::lock_guard lock(mutex_);
  in_use_ -= size;
  auto after = free_.lower_bound(start);
  if (after != free_.end() && start + room == after->first) {
    room += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == start) {
      before->second += room;
      return;
    }
  }
  free_.emplace(start, room);
}

bool Memory::holds(const void* first, std::size_t bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  const auto begin = reinterpret_cast<std::uintptr_t>(addresses_);
  if (address < begin) return false;
  const std::size_t start = address - begin;
  const std::lock_guard lock(mutex_);
  auto block = live_.upper_bound(start);
  if (block == live_.begin()) return false;
  --block;
  return start - block->first <= block->second && bytes <= block->second - (start - block->first);
}

std::size_t Memory::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

}  // namespace sim

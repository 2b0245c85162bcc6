// Memory of a pretend device: addresses that fault where the host touches them, and the same bytes
// at other addresses for the device's own thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace sim {

/// Thread-safe.
class Memory {
 public:
  /// Reserves the address ranges; `limit` bytes may be in use. Less than that where the process may
  /// not have so many addresses.
  explicit Memory(std::size_t limit);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// A block of device addresses, or null where there is no room. Its bytes are undefined.
  void* take(std::size_t bytes);
  /// The block's owner is done with it: no later call may name it.
  void retire(void* block);
  /// No call in flight uses the block any longer: others may have it.
  void give_back(void* block, std::size_t bytes);

  /// Whether [first, first + bytes) lies in one block that is in use.
  bool holds(const void* first, std::size_t bytes) const;
  /// The bytes behind a device address. For the device's thread.
  void* real(const void* address) const noexcept {
    return reinterpret_cast<char*>(const_cast<void*>(address)) + offset_;
  }

  std::size_t limit() const noexcept { return limit_; }
  std::size_t in_use() const;

 private:
  using Blocks = std::map<std::size_t, std::size_t>;  // by start: sizes

  char* addresses_ = nullptr;  // PROT_NONE; what tensors see
  std::ptrdiff_t offset_ = 0;  // from there to the bytes
  std::size_t limit_ = 0;
  mutable std::mutex mutex_;
  Blocks free_;
  Blocks live_;
  std::size_t in_use_ = 0;
};

}  // namespace sim

// Memory that ends at an inaccessible page: a kernel that reads or writes one byte beyond its
// elements crashes, with or without a sanitizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace baregrad::test {

class FencedBuffer {
 public:
  /// `size` bytes up to the fence; the bytes before them hold a pattern.
  explicit FencedBuffer(std::size_t size)
      : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        room_((size / page_ + 2) * page_),
        size_(size) {
    void* mapped =
        mmap(nullptr, room_ + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(mapped);
    if (mprotect(base_ + room_, page_, PROT_NONE) != 0) throw std::bad_alloc();
    reset();
  }
  FencedBuffer(const FencedBuffer&) = delete;
  FencedBuffer& operator=(const FencedBuffer&) = delete;
  ~FencedBuffer() { munmap(base_, room_ + page_); }

  /// Moves the start so that `size` bytes are left, and writes the pattern everywhere.
  void resize(std::size_t size) {
    size_ = size;
    reset();
  }
  std::byte* data() { return base_ + room_ - size_; }
  bool intact_before() {
    for (const std::byte* p = data() - kChecked; p != data(); ++p) {
      if (*p != kPattern) return false;
    }
    return true;
  }

 private:
  static constexpr std::byte kPattern{0xa5};
  static constexpr std::size_t kChecked = 128;

  void reset() { std::memset(data() - kChecked, static_cast<int>(kPattern), size_ + kChecked); }

  std::size_t page_;
  std::size_t room_;
  std::size_t size_;
  std::byte* base_ = nullptr;
};

}  // namespace baregrad::test

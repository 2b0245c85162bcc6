// The list of formats, and the limit on memory.
#include <cstdlib>
#include <new>
#include <stdexcept>

#include "baregrad/allocator.h"
#include "tests/fuzz_files/format.h"

namespace {

thread_local std::size_t allocation_limit = SIZE_MAX;

struct OverBound : std::bad_alloc {
  const char* what() const noexcept override { return "an allocation larger than the file allows"; }
};

void check_bound(std::size_t bytes) {
  if (bytes <= allocation_limit) return;
  allocation_limit = SIZE_MAX;  // the exception needs memory too
  throw OverBound();
}

void* allocate(std::size_t bytes) {
  check_bound(bytes);
  void* block = std::malloc(bytes == 0 ? 1 : bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

// Replaces all forms of plain `new`: a sanitizer checks that `new` and `delete` match. The aligned
// forms are not replaced.
void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return bytes > allocation_limit ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& tag) noexcept {
  return ::operator new(bytes, tag);
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { std::free(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { std::free(block); }

namespace baregrad::fuzz {

namespace {

/// Memory directly from the system, so that a sanitizer checks the ends of every tensor.
class BoundedAllocator : public Allocator {
 public:
  void* allocate(std::size_t bytes) override {
    check_bound(bytes);
    return system_allocator().allocate(bytes);
  }
  void deallocate(void* block, std::size_t bytes) noexcept override {
    system_allocator().deallocate(block, bytes);
  }
  AllocatorStats stats() const noexcept override { return system_allocator().stats(); }
  void reset_peak() noexcept override { system_allocator().reset_peak(); }
  std::string_view name() const noexcept override { return "bounded"; }
};

Allocator& bounded_allocator() {
  // Never destroyed, since tensors may live until exit.
  static auto* allocator = new BoundedAllocator;
  return *allocator;
}

}  // namespace

const std::vector<Format>& formats() {
  static const std::vector<Format> all = {kSafetensors, kNpy, kNpz, kIdx, kCsv, kPnm, kPng, kGzip};
  return all;
}

struct MemoryBound::Impl {
  AllocatorScope scope{bounded_allocator()};
};

MemoryBound::MemoryBound(std::size_t bytes) : impl_(new Impl) { allocation_limit = bytes; }

MemoryBound::~MemoryBound() {
  allocation_limit = SIZE_MAX;
  delete impl_;
}

void require(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

}  // namespace baregrad::fuzz

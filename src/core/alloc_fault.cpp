// An allocator that fails on purpose, to test what happens when memory runs out at any point.
#include <mutex>

#include "baregrad/allocator.h"
#include "core/alloc_internal.h"
#include "core/fork.h"

namespace baregrad {

struct FaultInjectingAllocator::Impl final : detail::ForkParticipant {
  explicit Impl(Allocator& wrapped) : inner(wrapped) { detail::add_fork_participant(*this); }
  ~Impl() { detail::remove_fork_participant(*this); }

  void before_fork() noexcept override { mutex.lock(); }
  void after_fork(bool) noexcept override { mutex.unlock(); }

  Allocator& inner;
  mutable std::mutex mutex;
  std::uint64_t attempts = 0;
  std::uint64_t index = 0;
  bool armed = false;
  bool and_after = false;
};

FaultInjectingAllocator::FaultInjectingAllocator(Allocator& inner)
    : impl_(std::make_unique<Impl>(inner)) {}
FaultInjectingAllocator::~FaultInjectingAllocator() = default;

void FaultInjectingAllocator::fail_at(std::uint64_t index, bool and_after) noexcept {
  std::lock_guard lock(impl_->mutex);
  impl_->attempts = 0;
  impl_->index = index;
  impl_->armed = true;
  impl_->and_after = and_after;
}

void FaultInjectingAllocator::never_fail() noexcept {
  std::lock_guard lock(impl_->mutex);
  impl_->attempts = 0;
  impl_->armed = false;
}

std::uint64_t FaultInjectingAllocator::attempts() const noexcept {
  std::lock_guard lock(impl_->mutex);
  return impl_->attempts;
}

void* FaultInjectingAllocator::allocate(std::size_t bytes) {
  bool fail = false;
  {
    std::lock_guard lock(impl_->mutex);
    const std::uint64_t attempt = impl_->attempts++;
    fail =
        impl_->armed && (attempt == impl_->index || (impl_->and_after && attempt > impl_->index));
  }
  if (fail) {
    detail::throw_out_of_memory(name(), bytes, impl_->inner.stats().live_bytes,
                                "this failure was injected");
  }
  return impl_->inner.allocate(bytes);
}

void FaultInjectingAllocator::deallocate(void* block, std::size_t bytes) noexcept {
  impl_->inner.deallocate(block, bytes);
}

AllocatorStats FaultInjectingAllocator::stats() const noexcept { return impl_->inner.stats(); }
void FaultInjectingAllocator::reset_peak() noexcept { impl_->inner.reset_peak(); }
std::size_t FaultInjectingAllocator::trim() noexcept { return impl_->inner.trim(); }

}  // namespace baregrad

// The memory of training steps.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "baregrad/allocator.h"

namespace baregrad::train {

/// Where the tensors of a step come from. An arena is made when a step has shown how much it takes:
/// the second, since in the first one the optimizer makes memory that stays.
class StepMemory {
 public:
  explicit StepMemory(const std::string& name) : arena_wanted_(name == "arena") {
    if (name == "system") chosen_ = &system_allocator();
  }

  template <class Step>
  void run(const Step& step) {
    if (arena_wanted_ && !arena_ && warm_) {
      measure(step);
      return;
    }
    warm_ = true;
    if (arena_) {
      const ArenaAllocator::Checkpoint mark = arena_->checkpoint();
      {
        const AllocatorScope scope(*arena_);
        step();
      }
      arena_->rewind(mark);
      return;
    }
    if (chosen_ == nullptr) {
      step();
      return;
    }
    const AllocatorScope scope(*chosen_);
    step();
  }

 private:
  template <class Step>
  void measure(const Step& step) {
    PoolAllocator pool;
    {
      const AllocatorScope scope(pool);
      step();
    }
    // Rounding, and room that waits under a block that lives longer.
    constexpr std::size_t kSpare = std::size_t{1} << 20;
    arena_ = std::make_unique<ArenaAllocator>(2 * pool.stats().peak_bytes + kSpare);
  }

  bool arena_wanted_;
  bool warm_ = false;
  Allocator* chosen_ = nullptr;
  std::unique_ptr<ArenaAllocator> arena_;
};

}  // namespace baregrad::train

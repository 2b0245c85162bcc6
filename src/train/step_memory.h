// The allocator of training steps.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "baregrad/allocator.h"

namespace baregrad::train {

/// Runs training steps with the chosen allocator. The size of an arena is measured in the second
/// step: in the first one the optimizer allocates its state, which outlives the step.
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
    // For rounding and for gaps under longer-lived blocks.
    constexpr std::size_t kSpare = std::size_t{1} << 20;
    arena_ = std::make_unique<ArenaAllocator>(2 * pool.stats().peak_bytes + kSpare);
  }

  bool arena_wanted_;
  bool warm_ = false;
  Allocator* chosen_ = nullptr;
  std::unique_ptr<ArenaAllocator> arena_;
};

}  // namespace baregrad::train

// Generator: who holds which position of the random sequence. The numbers come from philox.h.
#include "baregrad/generator.h"

namespace baregrad {

void Generator::manual_seed(std::uint64_t seed) noexcept { set_state({seed, 0}); }

Generator::State Generator::state() const noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return state_;
}

void Generator::set_state(const State& state) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  state_ = state;
}

Generator::State Generator::advance(std::uint64_t count) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const State before = state_;
  state_.position += count;
  return before;
}

Generator& default_generator() {
  static Generator& generator = *new Generator;
  return generator;
}

void manual_seed(std::uint64_t seed) { default_generator().manual_seed(seed); }

}  // namespace baregrad

// Generator: who holds which position of the random sequence. The numbers come from philox.h.
#include "baregrad/generator.h"

#include <array>
#include <mutex>

#include "core/fork.h"
#include "core/made_once.h"

namespace baregrad {

namespace {

/// A handful of locks serves all generators, so that a fork can hold them all.
struct GeneratorLocks final : detail::ForkParticipant {
  std::array<std::mutex, 16> locks;

  void before_fork() noexcept override {
    for (std::mutex& lock : locks) lock.lock();
  }
  void after_fork(bool) noexcept override {
    for (std::mutex& lock : locks) lock.unlock();
  }
};
constinit Eternal<GeneratorLocks> g_generator_locks;
[[maybe_unused]] const bool g_generator_locks_added =
    (detail::add_fork_participant(g_generator_locks.value), true);

std::mutex& lock_of(const Generator& generator) noexcept {
  auto& locks = g_generator_locks.value.locks;
  return locks[reinterpret_cast<std::uintptr_t>(&generator) / 64 % locks.size()];
}

constinit MadeOnce<Generator> g_default_generator;

}  // namespace

void Generator::manual_seed(std::uint64_t seed) noexcept { set_state({seed, 0}); }

Generator::State Generator::state() const noexcept {
  const std::lock_guard lock(lock_of(*this));
  return state_;
}

void Generator::set_state(const State& state) noexcept {
  const std::lock_guard lock(lock_of(*this));
  state_ = state;
}

Generator::State Generator::advance(std::uint64_t count) noexcept {
  const std::lock_guard lock(lock_of(*this));
  const State before = state_;
  state_.position += count;
  return before;
}

Generator& default_generator() { return g_default_generator.get(); }

void manual_seed(std::uint64_t seed) { default_generator().manual_seed(seed); }

}  // namespace baregrad

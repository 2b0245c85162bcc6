// Generator: counter-based random numbers (Philox 4x32-10).
#pragma once

#include <cstdint>

#include "baregrad/export.h"

namespace baregrad {

/// A seed and a position. Each random op takes the numbers from the position on and moves it; the
/// number at a position never depends on threads or on how ops were batched within one call.
class BAREGRAD_API Generator {
 public:
  explicit Generator(std::uint64_t seed = 0) noexcept : state_{seed, 0} {}
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  struct State {
    std::uint64_t seed = 0;
    std::uint64_t position = 0;
    friend bool operator==(const State&, const State&) = default;
  };

  void manual_seed(std::uint64_t seed) noexcept;
  State state() const noexcept;
  void set_state(const State& state) noexcept;
  /// The state before, with the position moved on by `count` counters of 128 bits.
  State advance(std::uint64_t count) noexcept;

 private:
  State state_;  // under a lock that several generators share
};

/// The process-wide generator, used where none is given. Seed 0 until manual_seed.
BAREGRAD_API Generator& default_generator();
BAREGRAD_API void manual_seed(std::uint64_t seed);

}  // namespace baregrad

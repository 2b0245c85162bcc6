// Keeping a thread off the pool.
#pragma once

namespace baregrad::parallel {

/// While alive, every parallel_for of this thread runs inline: for threads that work beside the one
/// that computes, whose regions would otherwise find the pool taken.
class SerialScope {
 public:
  SerialScope() noexcept;
  ~SerialScope();
  SerialScope(const SerialScope&) = delete;
  SerialScope& operator=(const SerialScope&) = delete;

 private:
  bool outer_;
};

}  // namespace baregrad::parallel

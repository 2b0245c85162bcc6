// Keeping a thread out of the thread pool.
#pragma once

namespace baregrad::parallel {

/// While alive, every parallel_for of this thread runs inline: for background threads, whose
/// regions would otherwise occupy the pool.
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

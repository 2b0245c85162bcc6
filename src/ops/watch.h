// Those who look on while ops run: the profiler, the search for anomalies, recorders of gradients.
// Without one, a call pays one load and a branch.
#pragma once

#include <array>
#include <atomic>
#include <span>

#include "baregrad/tensor.h"
#include "ops/op_id.h"

namespace baregrad {

struct OpCall;

namespace watch {

/// Called in the thread that runs the op; calls nest. A watcher that throws ends the op with its
/// error. Who is told of a beginning is told of the end, also when it was unset meanwhile.
class Watcher {
 public:
  virtual void op_begins(const OpCall&) {}
  /// Not called when the op threw: `op_failed` is.
  virtual void op_ends(const OpCall&, std::span<const Tensor> /*results*/) {}
  virtual void op_failed() noexcept {}
  /// All that comes for a node of a recorded graph on the way back has come. `node` is its number,
  /// `gradients` has one tensor per result, undefined where nothing came.
  virtual void gradients_arrived(std::uint64_t /*node*/, std::span<const Tensor> /*gradients*/) {}
  /// The node's gradient rule; ops nest inside.
  virtual void backward_begins(const char* /*op*/, const char* /*label*/,
                               std::span<const Tensor> /*gradients*/) {}
  virtual void backward_ends(const char* /*op*/) {}
  /// The gradient of an input of the node in hand.
  virtual void gradient_made(const char* /*op*/, const char* /*label*/,
                             const Tensor& /*gradient*/) {}
  virtual void backward_failed() noexcept {}
  /// The part of an op that computes. Must not throw.
  virtual void kernel_begins(OpId) noexcept {}
  virtual void kernel_ends(OpId) noexcept {}

 protected:
  ~Watcher() = default;
};

/// Beginnings are told in this order and ends in the reverse one, so that the profiler times the op
/// and not the others, and is told of the end before another may throw.
enum class Slot : unsigned { Anomaly, Gradients, Profile };
inline constexpr unsigned kSlots = 3;

/// A bit per slot in use, and kExecutors.
using Mask = unsigned;
inline std::atomic<Mask> active{0};
inline std::array<std::atomic<Watcher*>, kSlots> watchers{};

/// Some thread has pushed an executor: calls take the long way.
inline constexpr Mask kExecutors = 1U << kSlots;
inline std::atomic<int> executors{0};
inline void add_executor() noexcept {
  executors.fetch_add(1, std::memory_order_relaxed);
  active.fetch_or(kExecutors, std::memory_order_release);
}
/// The bit may stay set while another thread adds one: that costs time, not correctness.
inline void remove_executor() noexcept {
  if (executors.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  active.fetch_and(~kExecutors, std::memory_order_release);
  if (executors.load(std::memory_order_relaxed) != 0) {
    active.fetch_or(kExecutors, std::memory_order_release);
  }
}

/// Who looks on now: to be asked once for a beginning and its end.
inline Mask on() noexcept { return active.load(std::memory_order_acquire); }

/// Watchers are process-lifetime objects, one per slot: an op that began before `unset` still tells
/// them its end.
inline void set(Slot slot, Watcher* watcher) noexcept {
  const auto index = static_cast<unsigned>(slot);
  watchers[index].store(watcher, std::memory_order_relaxed);
  active.fetch_or(1U << index, std::memory_order_release);
}
inline void unset(Slot slot) noexcept {
  active.fetch_and(~(1U << static_cast<unsigned>(slot)), std::memory_order_release);
}

template <class F>
void each(Mask mask, const F& call) {
  if (mask == 0) [[likely]]
    return;
  for (unsigned i = 0; i < kSlots; ++i) {
    if ((mask >> i & 1U) != 0) call(*watchers[i].load(std::memory_order_relaxed));
  }
}
template <class F>
void each_in_reverse(Mask mask, const F& call) {
  if (mask == 0) [[likely]]
    return;
  for (unsigned i = kSlots; i-- > 0;) {
    if ((mask >> i & 1U) != 0) call(*watchers[i].load(std::memory_order_relaxed));
  }
}

/// Around the call of a kernel.
class KernelScope {
 public:
  explicit KernelScope(OpId op) noexcept : op_(op), mask_(on()) {
    if (mask_ != 0) [[unlikely]]
      each(mask_, [&](Watcher& w) { w.kernel_begins(op_); });
  }
  ~KernelScope() {
    if (mask_ != 0) [[unlikely]]
      each_in_reverse(mask_, [&](Watcher& w) { w.kernel_ends(op_); });
  }
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;

 private:
  OpId op_;
  Mask mask_;
};

}  // namespace watch
}  // namespace baregrad

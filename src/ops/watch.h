// Those who look on while ops run: the profiler and the search for anomalies. Without one, a call
// pays one load and a branch.
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
/// error.
class Watcher {
 public:
  virtual void op_begins(const OpCall& call) = 0;
  /// Not called when the op threw: `op_failed` is.
  virtual void op_ends(const OpCall& call, std::span<const Tensor> results) = 0;
  virtual void op_failed() noexcept = 0;
  /// A node of a recorded graph on the way back; ops nest inside.
  virtual void backward_begins(const char* op, std::span<const Tensor> gradients) = 0;
  virtual void backward_ends(const char* op) = 0;
  /// The gradient of an input of the node in hand.
  virtual void gradient_made(const char* op, const char* label, const Tensor& gradient) = 0;
  virtual void backward_failed() noexcept = 0;
  /// The part of an op that computes. Must not throw.
  virtual void kernel_begins(OpId op) noexcept = 0;
  virtual void kernel_ends(OpId op) noexcept = 0;

 protected:
  ~Watcher() = default;
};

enum class Slot : unsigned { Anomaly, Profile };
inline constexpr int kSlots = 2;

inline std::atomic<unsigned> active{0};  ///< a bit per slot in use
inline std::array<std::atomic<Watcher*>, kSlots> watchers{};

inline bool on() noexcept { return active.load(std::memory_order_relaxed) != 0; }

/// A watcher must outlive every op that began while it was set: they are process-lifetime objects.
inline void set(Slot slot, Watcher* watcher) noexcept {
  const auto index = static_cast<unsigned>(slot);
  watchers[index].store(watcher, std::memory_order_release);
  if (watcher != nullptr) {
    active.fetch_or(1U << index, std::memory_order_acq_rel);
  } else {
    active.fetch_and(~(1U << index), std::memory_order_acq_rel);
  }
}

template <class F>
void each(const F& call) {
  for (const auto& slot : watchers) {
    if (Watcher* watcher = slot.load(std::memory_order_acquire)) call(*watcher);
  }
}

/// Around the call of a kernel.
class KernelScope {
 public:
  explicit KernelScope(OpId op) noexcept : op_(op), on_(on()) {
    if (on_) [[unlikely]]
      each([&](Watcher& w) { w.kernel_begins(op_); });
  }
  ~KernelScope() {
    if (on_) [[unlikely]]
      each([&](Watcher& w) { w.kernel_ends(op_); });
  }
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;

 private:
  OpId op_;
  bool on_;
};

}  // namespace watch
}  // namespace baregrad

// The stack of executors of each thread.
#include "ops/executor.h"

#include <utility>

#include "core/fast_tls.h"
#include "ops/eager.h"
#include "ops/watch.h"

namespace baregrad {

namespace {

BAREGRAD_FAST_TLS Executor* g_top = nullptr;

/// Tells the watchers of a call, also when it throws.
class Watched {
 public:
  explicit Watched(const OpCall& call) : call_(call), told_(watch::on()) {
    watch::each(told_, [&](watch::Watcher& w) { w.op_begins(call_); });
  }
  void done(std::span<const Tensor> results) {
    watch::each_in_reverse(std::exchange(told_, 0),
                           [&](watch::Watcher& w) { w.op_ends(call_, results); });
  }
  ~Watched() {
    watch::each_in_reverse(told_, [](watch::Watcher& w) { w.op_failed(); });
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  const OpCall& call_;
  watch::Mask told_;
};

void execute_watched(const OpCall& call, std::span<Tensor> results) {
  Watched watched(call);
  eager::execute(call, results);
  watched.done(call.kind == CallKind::Make ? results : call.outputs);
}

}  // namespace

void Executor::pass_on(const OpCall& call, std::span<Tensor> results) {
  if (below_ != nullptr) {
    below_->execute(call, results);
  } else {
    execute_watched(call, results);
  }
}

ExecutorScope::ExecutorScope(Executor& executor) noexcept : executor_(executor) {
  executor_.below_ = std::exchange(g_top, &executor_);
  watch::add_executor();
}

ExecutorScope::~ExecutorScope() {
  watch::remove_executor();
  g_top = executor_.below_;
}

void execute_below_tape(const OpCall& call, std::span<Tensor> results) {
  if (watch::on() == 0) [[likely]] {
    eager::execute(call, results);
  } else if (g_top != nullptr) {
    g_top->execute(call, results);
  } else {
    execute_watched(call, results);
  }
}

Tensor make_below_tape(const OpCall& call) {
  if (watch::on() == 0) [[likely]]
    return eager::make(call);
  Tensor result;
  execute_below_tape(call, {&result, 1});
  return result;
}

std::size_t result_count(const OpCall& call) {
  const int results = op_info(call.op).results;
  return static_cast<std::size_t>(results >= 0 ? results : call.inputs[0]->ndim());
}

}  // namespace baregrad

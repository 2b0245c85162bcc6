// Executors: what sees an op call on its way to the backend. The tape records it, watchers look on,
// a tracer keeps it, and eager execution, at the bottom, computes it.
//
// Order, from the outside: the tape (where a gradient may be wanted), the executors that this
// thread has pushed, the watchers, eager execution.
#pragma once

#include <span>

#include "ops/op_call.h"

namespace baregrad {

class Executor {
 public:
  /// Runs the call by passing it on, once. `results` are those of a Make call, undefined until it
  /// has run, and empty for the other kinds.
  virtual void execute(const OpCall& call, std::span<Tensor> results) = 0;

 protected:
  Executor() = default;
  virtual ~Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  /// To the executor below this one.
  void pass_on(const OpCall& call, std::span<Tensor> results);

 private:
  friend class ExecutorScope;
  friend void execute_below_tape(const OpCall& call, std::span<Tensor> results);
  Executor* below_ = nullptr;
};

/// While alive, the op calls of this thread pass through `executor`, which is in no other scope.
class [[nodiscard]] ExecutorScope {
 public:
  explicit ExecutorScope(Executor& executor) noexcept;
  ~ExecutorScope();
  ExecutorScope(const ExecutorScope&) = delete;
  ExecutorScope& operator=(const ExecutorScope&) = delete;

 private:
  Executor& executor_;
};

/// Runs a call past the executors that this thread has pushed and the watchers: for the tape.
void execute_below_tape(const OpCall& call, std::span<Tensor> results);

/// The same for a Make call with one result.
Tensor make_below_tape(const OpCall& call);

/// The tape of autograd, which records calls whose inputs have a history; set when the library is
/// loaded.
using Tape = void (*)(const OpCall& call, std::span<Tensor> results);
void set_tape(Tape tape) noexcept;

/// The number of results of a Make call.
std::size_t result_count(const OpCall& call);

}  // namespace baregrad

// The dispatch point: executors where someone must see the call, else eager execution.
#include "ops/dispatch.h"

#include "backends/cpu/small_calls.h"
#include "baregrad/error.h"
#include "core/history.h"
#include "core/message.h"
#include "ops/aliasing.h"
#include "ops/eager.h"
#include "ops/executor.h"
#include "ops/watch.h"

namespace baregrad {

namespace {

using kernels::NumberCall;

Tape g_tape = nullptr;

[[noreturn, gnu::noinline, gnu::cold]] void throw_undefined(const OpCall& call) {
  std::size_t k = 0;
  while (call.inputs[k]->defined()) ++k;
  throw ValueError(message(call.name(), ": input ", k, " is undefined"));
}

/// Who must see a call.
struct Route {
  bool taped;     ///< an input has a history, and this thread records
  bool executed;  ///< the tape, an executor or a watcher
};

/// Throws where an input is undefined.
Route route_of(const OpCall& call) {
  bool tracked = false;
  for (const Tensor& t : call.outputs) tracked |= t.defined() && History::maybe_tracked(t);
  for (const Tensor* t : call.inputs) {
    if (!t->defined()) [[unlikely]]
      throw_undefined(call);
    tracked |= History::maybe_tracked(*t);
  }
  const bool taped = tracked && History::recording();
  return {taped, taped || watch::on() != 0};
}

[[gnu::noinline]] void through_executors(const Route& route, const OpCall& call,
                                         std::span<Tensor> results) {
  if (route.taped) {
    g_tape(call, results);
  } else {
    execute_below_tape(call, results);
  }
}

}  // namespace

void set_tape(Tape tape) noexcept { g_tape = tape; }

Tensor run(const OpCall& call) {
  const Route route = route_of(call);
  if (!route.executed) return eager::make(call);
  Tensor result;
  through_executors(route, call, {&result, 1});
  return result;
}

std::vector<Tensor> run_many(const OpCall& call) {
  const Route route = route_of(call);
  std::vector<Tensor> results(result_count(call));
  if (route.executed) {
    through_executors(route, call, results);
  } else {
    eager::execute(call, results);
  }
  return results;
}

void run_in_place(const OpCall& call) {
  const Route route = route_of(call);
  for (const Tensor& out : call.outputs) check_writable(call, out);
  if (route.executed) {
    through_executors(route, call, {});
    return;
  }
  if (call.kind == CallKind::Into) {
    eager::into(call);
  } else {
    eager::execute(call, {});
  }
}

Tensor run_with_number(OpId op, const Tensor& x, const Scalar& number, bool number_first) {
  const NumberCall call(op, x);
  if (!call.fits()) return {};
  if ((History::maybe_tracked(x) && History::recording()) || watch::on() != 0) return {};
  Tensor out = Tensor::allocate(x.shape(), call.result(), op_name(op));
  call.run_into(out, number, number_first);
  return out;
}

}  // namespace baregrad

// Eager execution: infers and allocates the results, then hands the call to the backend of its
// device.
#pragma once

#include <span>

#include "ops/op_call.h"

namespace baregrad::eager {

/// The one result of a Make call.
Tensor make(const OpCall& call);
/// An Into call.
void into(const OpCall& call);
/// Any call. `results` as in Executor::execute.
void execute(const OpCall& call, std::span<Tensor> results);

}  // namespace baregrad::eager

// State, what parts of a training run hand out and take back, as a flat dict of Python.
#pragma once

#include "baregrad/state.h"
#include "bindings.h"

namespace baregrad::python {

using StateDict = nb::typed<nb::dict, nb::str, nb::any>;

/// {"0.exp_avg": Tensor, ..., "0.step": "7", "group.0.lr": "0.001"}: tensors, and values as the
/// text that reads back to the same bits.
StateDict dict_of(const State& state);
/// The reverse. Numbers are taken for their text, too. Throws TypeError; `who` opens the message.
State state_of(const nb::dict& dict, const char* who);

}  // namespace baregrad::python

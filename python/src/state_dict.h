// State, the saved part of a training run, as a flat Python dict.
#pragma once

#include "baregrad/state.h"
#include "bindings.h"

namespace baregrad::python {

using StateDict = nb::typed<nb::dict, nb::str, nb::any>;

/// {"0.exp_avg": Tensor, ..., "0.step": "7", "group.0.lr": "0.001"}: tensors, and values as text
/// that is read back to the same bits.
StateDict dict_of(const State& state);
/// The reverse. Numbers are accepted in place of their text. Throws TypeError; `who` opens the
/// message.
State state_of(const nb::dict& dict, const char* who);

}  // namespace baregrad::python

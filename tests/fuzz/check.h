// Invariants of every tensor that a function returns, and of every block that it was given.
#pragma once

#include <string>

#include "tests/fuzz/source.h"

namespace baregrad::fuzz {

/// The fault of a returned tensor; empty if there is none. Reads every element, except of large
/// tensors; `unset`: a bool may hold any byte.
std::string flaw_in(const Tensor& t, bool unset);

/// The memory that was written against the rules; empty if there is none. `target`: the tensor that
/// the call may write to, or null.
std::string damage_to(const Watched& block, const Tensor* target);

}  // namespace baregrad::fuzz

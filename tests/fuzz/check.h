// What must hold of every tensor a function returns, and of every block it was given.
#pragma once

#include <string>

#include "tests/fuzz/source.h"

namespace baregrad::fuzz {

/// What is wrong with a returned tensor; empty when nothing is. Reads every element of all but
/// large ones; `unset`: a bool may hold any byte.
std::string flaw_in(const Tensor& t, bool unset);

/// What was written that should not have been; empty when nothing was. `target`: the tensor the
/// call was allowed to write, or null.
std::string damage_to(const Watched& block, const Tensor* target);

}  // namespace baregrad::fuzz

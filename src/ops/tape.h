// The dispatch point's way up: what it does with calls that must be recorded or watched. Declared
// here, where it is called; defined in autograd/record.cpp.
#pragma once

#include <vector>

#include "ops/dispatch.h"

namespace baregrad::tape {

Tensor run(const OpCall& call);
std::vector<Tensor> run_many(const OpCall& call);
void run_into(const OpCall& call, const Tensor& out);
void run_update(const OpCall& call, const Tensor& out);

}  // namespace baregrad::tape

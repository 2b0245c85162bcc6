// Views in messages, in the words that the ops use for tensors.
#pragma once

#include <string>

#include "backends/call.h"

namespace baregrad::kernels {

Dims shape_of(const View& v);
/// "float32[2,3]"
std::string describe(const View& v);

}  // namespace baregrad::kernels

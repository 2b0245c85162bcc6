// What the order ops and their kernels agree on: which outputs a call wants. One that is not wanted
// is there, but empty.
#pragma once

namespace baregrad::kernels {

/// attrs.mode of sort and unique, or-ed. unique always gives its values.
enum OrderOutputs : int {
  kOrderValues = 1,
  kOrderIndices = 2,
  kOrderInverse = 4,
  kOrderCounts = 8,
};

}  // namespace baregrad::kernels

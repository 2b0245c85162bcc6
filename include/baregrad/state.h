// Tensors and numbers by name: what layers, optimizers, schedules and loaders hand to whoever
// writes them to a file, and take back from there.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "baregrad/tensor.h"

namespace baregrad {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};
using NamedTensors = std::vector<NamedTensor>;

/// All that a part of a training run needs to go on where it stopped.
struct State {
  NamedTensors tensors;
  std::map<std::string, std::string> values;  ///< numbers as text that reads back to the same bits
};

}  // namespace baregrad

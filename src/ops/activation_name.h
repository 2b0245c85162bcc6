// Names of activations, in messages and prints.
#pragma once

#include "baregrad/activation.h"

namespace baregrad {

constexpr const char* name_of(Activation activation) noexcept {
  switch (activation) {
    case Activation::None:
      return "none";
    case Activation::Relu:
      return "relu";
    case Activation::Gelu:
      return "gelu";
    case Activation::GeluTanh:
      return "gelu_tanh";
    case Activation::Silu:
      return "silu";
  }
  return "unknown";
}

}  // namespace baregrad

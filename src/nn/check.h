// Checks of the arguments of layers. Tensors are checked as in ops (require_defined).
#pragma once

#include <cstdint>

#include "baregrad/error.h"
#include "baregrad/tensor.h"
#include "core/message.h"
#include "ops/positions.h"

namespace baregrad::nn {

inline void require_positive(std::int64_t value, const char* what, const char* who) {
  if (value <= 0) throw ValueError(message(who, ": ", what, " must be positive, not ", value));
}

/// The most layers that one module creates. Each is an object with its own parameters and names.
inline constexpr std::int64_t kMostLayers = 4096;
inline void require_layers(std::int64_t value, const char* what, const char* who) {
  require_positive(value, what, who);
  if (value <= kMostLayers) return;
  throw ValueError(
      message(who, ": ", what, " is ", value, ", the most there are is ", kMostLayers));
}

inline void require_size(std::int64_t value, const char* what, const char* who) {
  if (value < 0)
    throw ValueError(message(who, ": ", what, " must not be negative, but is ", value));
}

/// The condition is false for NaN.
inline void require_probability(double p, const char* who) {
  if (!(p >= 0.0 && p <= 1.0)) {
    throw ValueError(message(who, ": the probability must lie between 0 and 1, not ", p));
  }
}

}  // namespace baregrad::nn

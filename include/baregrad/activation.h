// What a product may pass through on its way into its result.
#pragma once

#include <cstdint>

namespace baregrad {

/// Gelu is the one with erf. Integers know None and Relu only.
enum class Activation : std::uint8_t { None, Relu, Gelu, GeluTanh, Silu };

}  // namespace baregrad

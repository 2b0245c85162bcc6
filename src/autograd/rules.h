// Gradient rules: one row per op, in rules.cpp.
#pragma once

#include <cstdint>

#include "autograd/op_node.h"
#include "ops/op_id.h"

namespace baregrad::autograd {

using GradientRule = void (*)(Backward&);

/// Values that a gradient needs, as bits.
enum Keep : std::uint8_t {
  kNone = 0,
  kX = 1,                ///< input 0
  kY = 2,                ///< input 1
  kZ = 4,                ///< input 2
  kRest = 8,             ///< all inputs from 1 on: positions
  kOut = 16,             ///< the result
  kSecond = 32,          ///< the second result: positions, statistics
  kOutIfActivated = 64,  ///< the result of a product, where it has an activation
};

struct RuleRow {
  OpId op;
  GradientRule rule;  ///< null: not differentiable, the result has no history
  /// What the gradients of inputs 0, 1 and 2 (and all further ones) need. Kept only if that input
  /// wants its gradient.
  std::uint8_t keep[3];
  /// The rule sees float16 and bfloat16 as float32: its steps would round, or leave the range.
  bool wide = false;
};

const RuleRow& rule_row(OpId op) noexcept;

}  // namespace baregrad::autograd

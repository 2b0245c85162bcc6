// Planning of an iteration: the one place that drops, reorders and merges dimensions.
#pragma once

#include <cstdint>
#include <span>

#include "backends/cpu/abi.h"

namespace baregrad::kernels {

inline constexpr int kMaxOperands = kMaxInputs + 1;

/// Elements of one parallel chunk where each costs about what a copy does: some microseconds of
/// the cheapest op, a few times what waking a thread costs.
inline constexpr std::int64_t kElementGrain = 16384;

/// A common iteration space of several operands. Operand 0 is the one written; its strides order
/// the dimensions, so that it is walked as contiguously as it can be. Strides count bytes here.
struct Plan {
  int ndim = 0;
  int operands = 0;
  std::int64_t numel = 1;
  std::int64_t shape[kMaxDims];
  std::int64_t strides[kMaxOperands][kMaxDims];

  /// Elements of the innermost dimension; 1 when there is none.
  std::int64_t inner() const noexcept { return ndim == 0 ? 1 : shape[ndim - 1]; }
  std::int64_t inner_stride(int operand) const noexcept {
    return ndim == 0 ? 0 : strides[operand][ndim - 1];
  }
  /// The operand's elements follow each other without gaps over the whole space.
  bool is_flat(int operand, std::int64_t itemsize) const noexcept;
  /// Moves dimension `from` to place `to`, all others keep their order.
  void move_dim(int from, int to) noexcept;
};

/// All views have the same ndim and the shape of views[0] (broadcast inputs carry stride 0).
Plan make_plan(std::span<const View* const> views) noexcept;

}  // namespace baregrad::kernels

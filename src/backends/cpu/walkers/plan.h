// The iteration space of elementwise ops and copies: dimensions are dropped, reordered and merged.
// Reductions have a plan of their own (reduce_plan.h).
#pragma once

#include <cstdint>
#include <span>

#include "backends/cpu/abi.h"

namespace baregrad::kernels {

inline constexpr int kMaxOperands = kMaxInputs + 1;

/// Elements of one parallel chunk where each costs about as much as a copy: some microseconds of
/// the cheapest op, a few times the cost of waking a thread.
inline constexpr std::int64_t kElementGrain = 16384;

/// The common iteration space of several operands. Operand 0 is the output; its strides order the
/// dimensions, so that it is written as contiguously as possible. Strides count bytes here.
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
  /// Whether the operand's elements are contiguous over the whole space.
  bool is_flat(int operand, std::int64_t itemsize) const noexcept;
  /// Moves dimension `from` to place `to`; all others keep their order.
  void move_dim(int from, int to) noexcept;
};

/// All views have the same ndim and the shape of views[0] (broadcast inputs have stride 0).
Plan make_plan(std::span<const View* const> views) noexcept;

}  // namespace baregrad::kernels

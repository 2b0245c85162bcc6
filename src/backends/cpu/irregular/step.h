// One step of an optimizer over many tensors: one pass over memory, for any number of tensors of
// any size. Clipping of gradients and moving averages of weights use it too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/cpu/abi.h"

namespace baregrad::kernels {

using baregrad::StepNumbers;
using baregrad::StepRule;
inline constexpr int kNumStepRules = 12;
inline constexpr std::size_t kMaxStepOperands = 5;

/// n elements of f32 or f64 of each operand, contiguous. An operand may be exactly another.
using StepFn = void (*)(void* const* operands, std::int64_t n, const StepNumbers& numbers);

/// The sum of the squares of n contiguous elements of f32 or f64, in double.
using SquareSumFn = double (*)(const void* x, std::int64_t n);

/// By type: 0 float32, 1 float64. Rules and sums have the same bits on every instruction set but
/// Reference: they only use additions, products, quotients and square roots, in one order.
struct StepKernels {
  StepFn step[kNumStepRules][2] = {};
  SquareSumFn square_sum[2] = {};
};

/// Tensors to be processed in one walk. Their elements form one sequence, which is cut into chunks
/// by its length alone. Any layout; f16 and bf16 are computed in f32, and operands may differ in
/// these types. Refilled for every walk: once its memory has grown, nothing is allocated.
class StepList {
 public:
  void clear() noexcept;
  /// The index to pass to add().
  std::size_t add_numbers(const StepNumbers& numbers);
  /// As many operands as the rule has, of one shape. Their shapes and strides must live until the
  /// walk. Only the second one may repeat elements (stride 0).
  void add(StepRule rule, std::size_t numbers, std::span<const View> operands);

  void run() const;
  /// The sum of squares of the first operands, in double; its bits depend on the shapes alone. May
  /// allocate.
  double square_sum();

 private:
  struct Item {
    std::int64_t begin;  // in the sequence
    std::int64_t numel;
    std::size_t numbers;
    StepRule rule;
    std::uint8_t operands;
    bool direct;  // every operand is contiguous, aligned and of the compute type
    bool is_f64;
    View views[kMaxStepOperands];
  };
  template <class F>
  void walk(F&& f) const;

  std::vector<StepNumbers> numbers_;
  std::vector<Item> items_;
  std::vector<double> partials_;
  std::int64_t length_ = 0;  // of the sequence
};

}  // namespace baregrad::kernels

// The op calls of one step: tensors of one device that share a rule and its numbers go into one
// call.
#pragma once

#include <span>
#include <vector>

#include "baregrad/tensor.h"
#include "ops/attrs.h"

namespace baregrad::optim {

/// Filled anew for every step. Its memory is kept, so that steps do not allocate.
class StepCalls {
 public:
  void clear() noexcept;
  /// The numbers of the tensors that are added next.
  void set_numbers(const StepNumbers& numbers);
  /// As many operands as the rule takes, of one shape. The second is read, the others are updated.
  void add(StepRule rule, std::span<const Tensor* const> operands);
  /// Runs the calls in order, unrecorded; then lets go of the tensors.
  void run(const char* who);

 private:
  struct Batch {
    StepAttrs attrs;
    std::vector<Tensor> inputs;
    std::vector<Tensor> outputs;
  };
  Batch& batch_for(StepRule rule, int operands, Device device);

  std::vector<Batch> batches_;
  std::size_t used_ = 0;
  bool same_numbers_ = false;  // as the last batch
  StepNumbers numbers_;
  std::vector<const Tensor*> pointers_;
};

}  // namespace baregrad::optim

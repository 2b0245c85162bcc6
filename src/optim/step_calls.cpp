// The op calls of one step.
#include "optim/step_calls.h"

#include "baregrad/autograd.h"
#include "ops/dispatch.h"

namespace baregrad::optim {

void StepCalls::clear() noexcept {
  for (std::size_t i = 0; i < used_; ++i) {
    batches_[i].inputs.clear();
    batches_[i].outputs.clear();
  }
  used_ = 0;
  same_numbers_ = false;
}

void StepCalls::set_numbers(const StepNumbers& numbers) {
  numbers_ = numbers;
  same_numbers_ = false;
}

StepCalls::Batch& StepCalls::batch_for(StepRule rule, int operands, Device device) {
  if (same_numbers_) {
    Batch& last = batches_[used_ - 1];
    if (last.attrs.rule == rule && last.outputs[0].device() == device) return last;
  }
  if (used_ == batches_.size()) batches_.emplace_back();
  Batch& batch = batches_[used_++];
  batch.attrs = {rule, operands, numbers_};
  same_numbers_ = true;
  return batch;
}

void StepCalls::add(StepRule rule, std::span<const Tensor* const> operands) {
  Batch& batch = batch_for(rule, static_cast<int>(operands.size()), operands[0]->device());
  batch.outputs.push_back(*operands[0]);
  if (operands.size() > 1) batch.inputs.push_back(*operands[1]);
  for (const Tensor* t : operands.subspan(operands.size() > 1 ? 2 : 1)) batch.outputs.push_back(*t);
}

void StepCalls::run(const char* who) {
  const no_grad unrecorded;
  for (std::size_t i = 0; i < used_; ++i) {
    const Batch& batch = batches_[i];
    pointers_.clear();
    for (const Tensor& t : batch.inputs) pointers_.push_back(&t);
    run_in_place(
        {OpId::optimizer_step, pointers_, batch.attrs, who, CallKind::Update, batch.outputs});
  }
  clear();
}

}  // namespace baregrad::optim

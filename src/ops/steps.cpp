// What optimizers and clipping compute over many tensors: infer functions.
#include "baregrad/error.h"
#include "core/message.h"
#include "ops/infer.h"

namespace baregrad {

std::vector<OutputSpec> infer_optimizer_step(const OpCall& call) {
  const auto operands = static_cast<std::size_t>(call.attrs.as<StepAttrs>().operands);
  const std::size_t kept = operands > 1 ? operands - 1 : 1;
  const std::size_t items = call.outputs.size() / kept;
  bool fits =
      items * kept == call.outputs.size() && call.inputs.size() == (operands > 1 ? items : 0);
  for (std::size_t k = 0; fits && k < call.outputs.size(); ++k) {
    const Dims& shape = call.outputs[k / kept * kept].shape();
    fits = call.outputs[k].shape() == shape;
    if (operands > 1) fits &= call.inputs[k / kept]->shape() == shape;
  }
  if (fits) return {};
  throw ShapeError(message(call.name(), ": the operands of an item differ in shape"));
}

std::vector<OutputSpec> infer_square_sum_of_all(const OpCall&) { return {{{}, DType::Float64}}; }

}  // namespace baregrad

// The one dispatch point. Every op of the engine becomes an OpCall and passes through here, on its
// way to the executors (executor.h) or straight to the backend.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "baregrad/tensor.h"
#include "ops/op_call.h"

namespace baregrad {

/// The result of a Make call of an op with one.
Tensor run(const OpCall& call);
/// The results of a Make call.
std::vector<Tensor> run_many(const OpCall& call);
/// Runs an Into or Update call: writes into its outputs, which keep their shape and dtype. Checks
/// everything before the first write; inputs that overlap an output are read first. Outputs must
/// hold no element twice; their version moves on.
void run_in_place(const OpCall& call);
/// op(x, number), or op(number, x), without a tensor around the number: where x is a few packed
/// floats and nothing is recorded or watched. Undefined where it is not so: then use run.
Tensor run_with_number(OpId op, const Tensor& x, const Scalar& number, bool number_first);

// Shorthands for the usual numbers of inputs.
inline Tensor run(OpId op, std::initializer_list<const Tensor*> inputs, AttrsRef attrs = {},
                  const char* who = nullptr) {
  return run({op, {inputs.begin(), inputs.size()}, attrs, who});
}
inline std::vector<Tensor> run_many(OpId op, std::initializer_list<const Tensor*> inputs,
                                    AttrsRef attrs = {}, const char* who = nullptr) {
  return run_many({op, {inputs.begin(), inputs.size()}, attrs, who});
}
/// Writes the result of an elementwise op, a product or a fill into `out`.
inline void run_into(OpId op, std::initializer_list<const Tensor*> inputs, const Tensor& out,
                     AttrsRef attrs = {}, const char* who = nullptr) {
  run_in_place({op, {inputs.begin(), inputs.size()}, attrs, who, CallKind::Into, {&out, 1}});
}

}  // namespace baregrad

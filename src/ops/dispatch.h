// The one dispatch point. Every op of the engine becomes an OpCall and passes through here; nothing
// else calls a kernel. Eager execution, the tape, and a tracer later, see the same description.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "baregrad/tensor.h"
#include "ops/attrs.h"
#include "ops/op_id.h"

namespace baregrad {

inline const Attrs kNoAttrs;

/// A description of a call, borrowed for its length: whoever records it copies.
struct OpCall {
  OpId op;
  std::span<const Tensor* const> inputs;
  const Attrs& attrs = kNoAttrs;
  const char* who = nullptr;  ///< the function the user called, where that is not the op's name

  /// What messages open with.
  const char* name() const noexcept { return who != nullptr ? who : op_name(op); }
};

/// Result of an op with one output.
Tensor run(const OpCall& call);
/// op(x, number), or op(number, x), without a tensor around the number: where x is a few plain
/// floats and nobody records or watches. Undefined where it is not so, for run to see to.
Tensor run_with_number(OpId op, const Tensor& x, const Scalar& number, bool number_first);
/// Results of an op with several.
std::vector<Tensor> run_many(const OpCall& call);
/// Elementwise ops and fills: writes the result into `out`, which keeps its shape and dtype.
/// Checks everything before the first write; inputs that overlap `out` are read first.
void run_into(const OpCall& call, const Tensor& out);
/// Ops that change some elements of `out` and keep the others (index_put): `out` must hold no
/// element twice; its version is bumped.
void run_update(const OpCall& call, const Tensor& out);

// What the four do when nobody records or watches: for them and the tape alone.
Tensor execute(const OpCall& call);
std::vector<Tensor> execute_many(const OpCall& call);
void execute_into(const OpCall& call, const Tensor& out);
void execute_update(const OpCall& call, const Tensor& out);

// Shorthands for the usual numbers of inputs.
inline Tensor run(OpId op, std::initializer_list<const Tensor*> inputs,
                  const Attrs& attrs = kNoAttrs, const char* who = nullptr) {
  return run({op, {inputs.begin(), inputs.size()}, attrs, who});
}
inline std::vector<Tensor> run_many(OpId op, std::initializer_list<const Tensor*> inputs,
                                    const Attrs& attrs = kNoAttrs, const char* who = nullptr) {
  return run_many({op, {inputs.begin(), inputs.size()}, attrs, who});
}
inline void run_into(OpId op, std::initializer_list<const Tensor*> inputs, const Tensor& out,
                     const Attrs& attrs = kNoAttrs, const char* who = nullptr) {
  run_into({op, {inputs.begin(), inputs.size()}, attrs, who}, out);
}
inline void run_update(OpId op, std::initializer_list<const Tensor*> inputs, const Tensor& out,
                       const Attrs& attrs = kNoAttrs) {
  run_update({op, {inputs.begin(), inputs.size()}, attrs}, out);
}

}  // namespace baregrad

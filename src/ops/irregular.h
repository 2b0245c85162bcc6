// Irregular ops: one row each, saying how to infer the result and what the kernel wants.
#pragma once

#include <vector>

#include "ops/infer.h"

namespace baregrad {

struct IrregularRow {
  OpId op;
  /// Shapes and dtypes of the outputs. Checks everything that the kernel relies on and throws.
  std::vector<OutputSpec> (*infer)(const OpCall& call);
  /// The kernel walks strides itself; otherwise inputs come row-major and aligned.
  bool strided_inputs;
};

/// The row of an irregular op.
const IrregularRow& irregular_row(OpId op) noexcept;

// Infer functions, next to the public functions that fill in the attributes they read.
std::vector<OutputSpec> infer_astype(const OpCall& call);
std::vector<OutputSpec> infer_contiguous_copy(const OpCall& call);
std::vector<OutputSpec> infer_fill(const OpCall& call);
std::vector<OutputSpec> infer_arange(const OpCall& call);
std::vector<OutputSpec> infer_linspace(const OpCall& call);
std::vector<OutputSpec> infer_eye(const OpCall& call);
std::vector<OutputSpec> infer_triangle(const OpCall& call);
std::vector<OutputSpec> infer_random(const OpCall& call);
std::vector<OutputSpec> infer_bernoulli(const OpCall& call);
std::vector<OutputSpec> infer_scan(const OpCall& call);
std::vector<OutputSpec> infer_softmax(const OpCall& call);
std::vector<OutputSpec> infer_logsumexp(const OpCall& call);
std::vector<OutputSpec> infer_concat(const OpCall& call);
std::vector<OutputSpec> infer_roll(const OpCall& call);
std::vector<OutputSpec> infer_pad(const OpCall& call);
std::vector<OutputSpec> infer_gather(const OpCall& call);
std::vector<OutputSpec> infer_scatter(const OpCall& call);
std::vector<OutputSpec> infer_masked_select(const OpCall& call);
std::vector<OutputSpec> infer_nonzero(const OpCall& call);
std::vector<OutputSpec> infer_index(const OpCall& call);
std::vector<OutputSpec> infer_index_put(const OpCall& call);
std::vector<OutputSpec> infer_sort(const OpCall& call);
std::vector<OutputSpec> infer_topk(const OpCall& call);
std::vector<OutputSpec> infer_searchsorted(const OpCall& call);
std::vector<OutputSpec> infer_unique(const OpCall& call);

}  // namespace baregrad

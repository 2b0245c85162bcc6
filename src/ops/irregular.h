// Irregular ops: one row each, saying how to infer the result and what the kernel wants.
#pragma once

#include <vector>

#include "ops/infer.h"

namespace baregrad {

/// What layouts a kernel takes; others are copied first.
enum class Inputs : std::uint8_t {
  Any,      ///< it walks strides itself and stages what is not aligned
  Aligned,  ///< it walks strides itself
  Packed,   ///< row-major and aligned
};

struct IrregularRow {
  OpId op;
  /// Shapes and dtypes of the outputs. Checks everything that the kernel relies on and throws.
  std::vector<OutputSpec> (*infer)(const OpCall& call);
  Inputs inputs;
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
std::vector<OutputSpec> infer_conv2d(const OpCall& call);
std::vector<OutputSpec> infer_conv2d_input(const OpCall& call);
std::vector<OutputSpec> infer_conv2d_weight(const OpCall& call);
std::vector<OutputSpec> infer_max_pool2d(const OpCall& call);
std::vector<OutputSpec> infer_avg_pool2d(const OpCall& call);
std::vector<OutputSpec> infer_avg_pool2d_backward(const OpCall& call);
std::vector<OutputSpec> infer_layer_norm(const OpCall& call);
std::vector<OutputSpec> infer_layer_norm_backward(const OpCall& call);
std::vector<OutputSpec> infer_rms_norm(const OpCall& call);
std::vector<OutputSpec> infer_rms_norm_backward(const OpCall& call);
std::vector<OutputSpec> infer_batch_norm(const OpCall& call);
std::vector<OutputSpec> infer_batch_norm_backward(const OpCall& call);
std::vector<OutputSpec> infer_cross_entropy(const OpCall& call);
std::vector<OutputSpec> infer_cross_entropy_backward(const OpCall& call);
std::vector<OutputSpec> infer_attention(const OpCall& call);
std::vector<OutputSpec> infer_attention_backward(const OpCall& call);

}  // namespace baregrad

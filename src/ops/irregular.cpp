// ONE row per irregular op of ops.def.
#include "ops/irregular.h"

#include <array>

namespace baregrad {

namespace {

// clang-format off
constexpr IrregularRow kRows[] = {
    // op                      infer                  inputs
    {OpId::astype,             infer_astype,          Inputs::Any},
    {OpId::contiguous_copy,    infer_contiguous_copy, Inputs::Any},
    {OpId::fill,               infer_fill,            Inputs::Any},
    {OpId::arange,             infer_arange,          Inputs::Packed},
    {OpId::linspace,           infer_linspace,        Inputs::Packed},
    {OpId::eye,                infer_eye,             Inputs::Packed},
    {OpId::tril,               infer_triangle,        Inputs::Packed},
    {OpId::triu,               infer_triangle,        Inputs::Packed},
    {OpId::random_uniform,     infer_random,          Inputs::Packed},
    {OpId::random_normal,      infer_random,          Inputs::Packed},
    {OpId::random_int,         infer_random,          Inputs::Packed},
    {OpId::random_perm,        infer_random,          Inputs::Packed},
    {OpId::bernoulli,          infer_bernoulli,       Inputs::Packed},
    {OpId::cumulative_sum,     infer_scan,            Inputs::Any},
    {OpId::cumulative_prod,    infer_scan,            Inputs::Any},
    {OpId::cumulative_max,     infer_scan,            Inputs::Any},
    {OpId::softmax,            infer_softmax,         Inputs::Any},
    {OpId::log_softmax,        infer_softmax,         Inputs::Any},
    {OpId::logsumexp,          infer_logsumexp,       Inputs::Any},
    {OpId::concat,             infer_concat,          Inputs::Any},
    {OpId::roll,               infer_roll,            Inputs::Any},
    {OpId::pad,                infer_pad,             Inputs::Any},
    {OpId::take,               infer_index,           Inputs::Any},
    {OpId::gather,             infer_gather,          Inputs::Any},
    {OpId::scatter,            infer_scatter,         Inputs::Any},
    {OpId::scatter_add,        infer_scatter,         Inputs::Any},
    {OpId::masked_select,      infer_masked_select,   Inputs::Packed},
    {OpId::nonzero,            infer_nonzero,         Inputs::Packed},
    {OpId::index,              infer_index,           Inputs::Any},
    {OpId::index_put,          infer_index_put,       Inputs::Any},
    {OpId::sort,               infer_sort,            Inputs::Packed},
    {OpId::topk,               infer_topk,            Inputs::Packed},
    {OpId::searchsorted,       infer_searchsorted,    Inputs::Packed},
    {OpId::unique,             infer_unique,          Inputs::Packed},
    {OpId::conv2d,               infer_conv2d,         Inputs::Packed},
    {OpId::conv2d_input,         infer_conv2d_input,   Inputs::Packed},
    {OpId::conv2d_weight,        infer_conv2d_weight,  Inputs::Packed},
    {OpId::max_pool2d,           infer_max_pool2d,     Inputs::Packed},
    {OpId::avg_pool2d,           infer_avg_pool2d,     Inputs::Packed},
    {OpId::avg_pool2d_backward,  infer_avg_pool2d_backward, Inputs::Packed},
    {OpId::layer_norm,           infer_layer_norm,     Inputs::Packed},
    {OpId::layer_norm_backward,  infer_layer_norm_backward, Inputs::Packed},
    {OpId::rms_norm,             infer_rms_norm,       Inputs::Packed},
    {OpId::rms_norm_backward,    infer_rms_norm_backward, Inputs::Packed},
    {OpId::batch_norm,           infer_batch_norm,     Inputs::Packed},
    {OpId::batch_norm_backward,  infer_batch_norm_backward, Inputs::Packed},
    {OpId::cross_entropy,        infer_cross_entropy,  Inputs::Packed},
    {OpId::cross_entropy_backward, infer_cross_entropy_backward, Inputs::Packed},
    {OpId::attention,            infer_attention,      Inputs::Aligned},
    {OpId::attention_backward,   infer_attention_backward, Inputs::Aligned},
};
// clang-format on

constexpr int kFirst = static_cast<int>(OpId::astype);
constexpr bool rows_follow_ops_def() {
  for (int i = 0; i < static_cast<int>(std::size(kRows)); ++i) {
    if (static_cast<int>(kRows[i].op) != kFirst + i) return false;
  }
  return std::size(kRows) == kNumOps - kFirst;
}
static_assert(rows_follow_ops_def(), "one row per BG_IRREGULAR of ops.def, in its order");

}  // namespace

const IrregularRow& irregular_row(OpId op) noexcept { return kRows[static_cast<int>(op) - kFirst]; }

std::vector<OutputSpec> infer_irregular(const OpCall& call) {
  return irregular_row(call.op).infer(call);
}

}  // namespace baregrad

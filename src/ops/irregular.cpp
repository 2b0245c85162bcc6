// ONE row per irregular op of ops.def.
#include "ops/irregular.h"

#include <array>

namespace baregrad {

namespace {

// clang-format off
constexpr IrregularRow kRows[] = {
    // op                      infer                  strided inputs
    {OpId::astype,             infer_astype,          true},
    {OpId::contiguous_copy,    infer_contiguous_copy, true},
    {OpId::fill,               infer_fill,            true},
    {OpId::arange,             infer_arange,          false},
    {OpId::linspace,           infer_linspace,        false},
    {OpId::eye,                infer_eye,             false},
    {OpId::tril,               infer_triangle,        false},
    {OpId::triu,               infer_triangle,        false},
    {OpId::random_uniform,     infer_random,          false},
    {OpId::random_normal,      infer_random,          false},
    {OpId::random_int,         infer_random,          false},
    {OpId::random_perm,        infer_random,          false},
    {OpId::bernoulli,          infer_bernoulli,       false},
    {OpId::cumulative_sum,     infer_scan,            true},
    {OpId::cumulative_prod,    infer_scan,            true},
    {OpId::cumulative_max,     infer_scan,            true},
    {OpId::softmax,            infer_softmax,         true},
    {OpId::log_softmax,        infer_softmax,         true},
    {OpId::logsumexp,          infer_logsumexp,       true},
    {OpId::concat,             infer_concat,          true},
    {OpId::roll,               infer_roll,            true},
    {OpId::pad,                infer_pad,             true},
    {OpId::take,               infer_index,           true},
    {OpId::gather,             infer_gather,          true},
    {OpId::scatter,            infer_scatter,         true},
    {OpId::scatter_add,        infer_scatter,         true},
    {OpId::masked_select,      infer_masked_select,   false},
    {OpId::nonzero,            infer_nonzero,         false},
    {OpId::index,              infer_index,           true},
    {OpId::index_put,          infer_index_put,       true},
    {OpId::sort,               infer_sort,            false},
    {OpId::topk,               infer_topk,            false},
    {OpId::searchsorted,       infer_searchsorted,    false},
    {OpId::unique,             infer_unique,          false},
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

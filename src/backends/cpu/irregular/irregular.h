// Kernels of the irregular ops, in baseline code: memory movement, order, random numbers.
#pragma once

#include "backends/cpu/abi.h"

namespace baregrad::kernels {

/// Fills table.irregular; one row per op in irregular.cpp.
void register_irregular(KernelTable& table);

// Each in the file its name suggests (creation, random, movement, indexing, order).
void astype_kernel(const IrregularCall& call);
void contiguous_copy_kernel(const IrregularCall& call);
void fill_kernel(const IrregularCall& call);
void arange_kernel(const IrregularCall& call);
void linspace_kernel(const IrregularCall& call);
void eye_kernel(const IrregularCall& call);
void tril_kernel(const IrregularCall& call);
void triu_kernel(const IrregularCall& call);
void random_uniform_kernel(const IrregularCall& call);
void random_normal_kernel(const IrregularCall& call);
void random_int_kernel(const IrregularCall& call);
void random_perm_kernel(const IrregularCall& call);
void bernoulli_kernel(const IrregularCall& call);
void cumulative_sum_kernel(const IrregularCall& call);
void cumulative_prod_kernel(const IrregularCall& call);
void cumulative_max_kernel(const IrregularCall& call);
void softmax_kernel(const IrregularCall& call);
void log_softmax_kernel(const IrregularCall& call);
void logsumexp_kernel(const IrregularCall& call);
void concat_kernel(const IrregularCall& call);
void roll_kernel(const IrregularCall& call);
void pad_kernel(const IrregularCall& call);
void take_kernel(const IrregularCall& call);
void gather_kernel(const IrregularCall& call);
void scatter_kernel(const IrregularCall& call);
void scatter_add_kernel(const IrregularCall& call);
void masked_select_kernel(const IrregularCall& call);
void nonzero_kernel(const IrregularCall& call);
void index_kernel(const IrregularCall& call);
void index_put_kernel(const IrregularCall& call);
void sort_kernel(const IrregularCall& call);
void topk_kernel(const IrregularCall& call);
void searchsorted_kernel(const IrregularCall& call);
void unique_kernel(const IrregularCall& call);
void conv2d_kernel(const IrregularCall& call);
void conv2d_input_kernel(const IrregularCall& call);
void conv2d_weight_kernel(const IrregularCall& call);
void max_pool2d_kernel(const IrregularCall& call);
void avg_pool2d_kernel(const IrregularCall& call);
void avg_pool2d_backward_kernel(const IrregularCall& call);
void layer_norm_kernel(const IrregularCall& call);
void layer_norm_backward_kernel(const IrregularCall& call);
void rms_norm_kernel(const IrregularCall& call);
void rms_norm_backward_kernel(const IrregularCall& call);
void batch_norm_kernel(const IrregularCall& call);
void batch_norm_backward_kernel(const IrregularCall& call);
void cross_entropy_kernel(const IrregularCall& call);
void cross_entropy_backward_kernel(const IrregularCall& call);
void attention_kernel(const IrregularCall& call);
void attention_backward_kernel(const IrregularCall& call);

}  // namespace baregrad::kernels

// Rules that need more than a line, by family; their rows are in rules.cpp.
#pragma once

#include "autograd/op_node.h"

namespace baregrad::autograd::rules {

// rules_elementwise.cpp
void elu(Backward& b);
void gelu(Backward& b);
void gelu_tanh(Backward& b);
void silu(Backward& b);
void mish(Backward& b);
void softplus(Backward& b);
void hardswish(Backward& b);
void divide(Backward& b);
void remainder(Backward& b);
void pow(Backward& b);
void maximum(Backward& b);
void minimum(Backward& b);
void atan2(Backward& b);
void hypot(Backward& b);
void copysign(Backward& b);
void logaddexp(Backward& b);
void relu_backward(Backward& b);
void tanh_backward(Backward& b);
void sigmoid_backward(Backward& b);
void where(Backward& b);
void clip(Backward& b);
void lerp(Backward& b);
void addcmul(Backward& b);

// rules_reduce.cpp
void sum(Backward& b);
void prod(Backward& b);
void extreme(Backward& b);
void count_nonzero(Backward& b);
void sum_squares(Backward& b);
void norm2(Backward& b);
void mean(Backward& b);
void var(Backward& b);
void std(Backward& b);
void cumulative_sum(Backward& b);
void cumulative_prod(Backward& b);
void cumulative_max(Backward& b);
void softmax(Backward& b);
void log_softmax(Backward& b);
void logsumexp(Backward& b);

// rules_movement.cpp
void as_strided(Backward& b);
void slice(Backward& b);
void permute_dims(Backward& b);
void reshape(Backward& b);
void flip(Backward& b);
void unfold(Backward& b);
void diagonal(Backward& b);
void tril(Backward& b);
void triu(Backward& b);
void concat(Backward& b);
void roll(Backward& b);
void pad(Backward& b);
void index(Backward& b);
void index_put(Backward& b);
void gather(Backward& b);
void scatter(Backward& b);
void scatter_add(Backward& b);
void masked_select(Backward& b);
void sort(Backward& b);
void topk(Backward& b);
void to_device(Backward& b);

// rules_product.cpp
void matmul(Backward& b);
void linear(Backward& b);
void vecdot(Backward& b);
void addmm(Backward& b);

// rules_conv.cpp
void conv2d(Backward& b);
void conv2d_input(Backward& b);
void conv2d_weight(Backward& b);
void max_pool2d(Backward& b);
void avg_pool2d(Backward& b);
void avg_pool2d_backward(Backward& b);

// rules_fused.cpp
void layer_norm(Backward& b);
void rms_norm(Backward& b);
void batch_norm(Backward& b);
void cross_entropy(Backward& b);
void attention(Backward& b);

}  // namespace baregrad::autograd::rules

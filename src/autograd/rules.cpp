// ONE row per op of ops.def, in its order: the gradient rule, and what it must keep.
//
// A rule is written in public ops, which are differentiable themselves, so that gradients of any
// order follow. It need not care about broadcasting and dtypes: the engine sums what it gives down
// to the input's shape and converts it.
#include "autograd/rules.h"

#include <cmath>
#include <numbers>

#include "autograd/rule_functions.h"
#include "baregrad/ops.h"

namespace baregrad::autograd {

namespace {

/// Piecewise constant: the gradient is zero, not missing.
void zero(Backward& b) { b.give(0, zeros_like(b.grad())); }
/// The gradient passes unchanged (the engine sums it down where the op repeated elements).
void same(Backward& b) { b.give(0, b.grad()); }

// clang-format off
#define X b.input(0)
#define Y b.output()
#define G b.grad()
#define UNARY(name, keep, gradient) \
  {OpId::name, [](Backward& b) { b.give(0, gradient); }, {keep}}
#define RULE(name, rule, ...) {OpId::name, rule, {__VA_ARGS__}}
// Of several steps: half precision takes them in float32 and is rounded once.
#define WIDE_UNARY(name, keep, gradient) \
  {OpId::name, [](Backward& b) { b.give(0, gradient); }, {keep}, true}
#define WIDE(name, rule, ...) {OpId::name, rule, {__VA_ARGS__}, true}
#define NONE(name) {OpId::name, nullptr, {}}

constexpr double kTwoOverSqrtPi = 2 * std::numbers::inv_sqrtpi;

// Any of its gradients takes all of it.
constexpr std::uint8_t kAttention = kX | kRest | kOut | kSecond;

constexpr RuleRow kRows[] = {
    UNARY(abs,          kX,   G * sign(X)),
    UNARY(negative,     kNone, negative(G)),
    RULE(sign,          zero),
    WIDE_UNARY(square,       kX,   G * (X * 2.0)),
    RULE(floor,         zero),
    RULE(ceil,          zero),
    RULE(round,         zero),
    RULE(trunc,         zero),
    UNARY(relu,         kOut, relu_backward(G, Y)),
    RULE(positive,      same),
    WIDE_UNARY(sqrt,         kOut, G / (Y * 2.0)),
    WIDE_UNARY(rsqrt,        kOut, G * (-0.5 * (Y * square(Y)))),
    WIDE_UNARY(reciprocal,   kOut, negative(G * square(Y))),
    UNARY(exp,          kOut, G * Y),
    WIDE_UNARY(exp2,         kOut, G * (Y * std::numbers::ln2)),
    WIDE_UNARY(expm1,        kOut, G * (Y + 1.0)),
    UNARY(log,          kX,   G / X),
    WIDE_UNARY(log2,         kX,   G / (X * std::numbers::ln2)),
    WIDE_UNARY(log10,        kX,   G / (X * std::numbers::ln10)),
    WIDE_UNARY(log1p,        kX,   G / (X + 1.0)),
    WIDE_UNARY(sin,          kX,   G * cos(X)),
    WIDE_UNARY(cos,          kX,   negative(G * sin(X))),
    WIDE_UNARY(tan,          kOut, G * (square(Y) + 1.0)),
    WIDE_UNARY(asin,         kX,   G * rsqrt(1.0 - square(X))),
    WIDE_UNARY(acos,         kX,   negative(G * rsqrt(1.0 - square(X)))),
    WIDE_UNARY(atan,         kX,   G / (square(X) + 1.0)),
    WIDE_UNARY(sinh,         kX,   G * cosh(X)),
    WIDE_UNARY(cosh,         kX,   G * sinh(X)),
    UNARY(tanh,         kOut, tanh_backward(G, Y)),
    WIDE_UNARY(asinh,        kX,   G * rsqrt(square(X) + 1.0)),
    WIDE_UNARY(acosh,        kX,   G * rsqrt(square(X) - 1.0)),
    WIDE_UNARY(atanh,        kX,   G / (1.0 - square(X))),
    WIDE_UNARY(erf,          kX,   G * (kTwoOverSqrtPi * exp(negative(square(X))))),
    UNARY(sigmoid,      kOut, sigmoid_backward(G, Y)),
    UNARY(leaky_relu,   kX,   where(X > 0, G, G * b.attrs<NumbersAttrs>().values[0])),
    WIDE(elu,           rules::elu, kX),
    WIDE(gelu,          rules::gelu, kX),
    WIDE(gelu_tanh,     rules::gelu_tanh, kX),
    WIDE(silu,          rules::silu, kX),
    WIDE(mish,          rules::mish, kX),
    WIDE(softplus,      rules::softplus, kX),
    WIDE(hardswish,     rules::hardswish, kX),
    NONE(bitwise_invert),
    NONE(isnan),
    NONE(isinf),
    NONE(isfinite),
    NONE(signbit),
    NONE(logical_not),
    RULE(add,           ([](Backward& b) { b.give(0, G); b.give(1, G); })),
    RULE(subtract,      ([](Backward& b) { b.give(0, G); if (b.needs(1)) b.give(1, negative(G)); })),
    RULE(multiply,      ([](Backward& b) {
                          if (b.needs(0)) b.give(0, G * b.input(1));
                          if (b.needs(1)) b.give(1, G * X);
                        }), kY, kX),
    WIDE(divide,        rules::divide, kY, kY | kOut),
    RULE(floor_divide,  ([](Backward& b) { zero(b); b.give(1, zeros_like(G)); })),
    WIDE(remainder,     rules::remainder, kNone, kX | kY),
    WIDE(pow,           rules::pow, kX | kY, kX | kY | kOut),
    RULE(maximum,       rules::maximum, kX | kY, kX | kY),
    RULE(minimum,       rules::minimum, kX | kY, kX | kY),
    WIDE(atan2,         rules::atan2, kX | kY, kX | kY),
    WIDE(hypot,         rules::hypot, kX | kOut, kY | kOut),
    WIDE(copysign,      rules::copysign, kX | kOut, kNone),
    WIDE(logaddexp,     rules::logaddexp, kX | kY, kX | kY),
    RULE(relu_backward, rules::relu_backward, kY, kNone),
    RULE(tanh_backward, rules::tanh_backward, kY, kX | kY),
    RULE(sigmoid_backward, rules::sigmoid_backward, kY, kX | kY),
    NONE(nextafter),
    NONE(bitwise_and),
    NONE(bitwise_or),
    NONE(bitwise_xor),
    NONE(bitwise_left_shift),
    NONE(bitwise_right_shift),
    NONE(equal),
    NONE(not_equal),
    NONE(less),
    NONE(less_equal),
    NONE(greater),
    NONE(greater_equal),
    NONE(logical_and),
    NONE(logical_or),
    NONE(logical_xor),
    RULE(where,         rules::where, kNone, kX, kX),
    RULE(clip,          rules::clip, kX | kY | kZ, kX | kY | kZ, kX | kY | kZ),
    WIDE(lerp,          rules::lerp, kZ, kZ, kX | kY),
    WIDE(addcmul,       rules::addcmul, kNone, kZ, kY),

    RULE(sum,           rules::sum),
    WIDE(prod,          rules::prod, kX | kOut),
    WIDE(amax,          rules::extreme, kX | kOut),
    WIDE(amin,          rules::extreme, kX | kOut),
    NONE(any),
    NONE(all),
    RULE(count_nonzero, rules::count_nonzero),
    WIDE(sum_squares,   rules::sum_squares, kX),
    WIDE(norm2,         rules::norm2, kX | kOut),
    WIDE(mean,          rules::mean),
    WIDE(var,           rules::var, kX),
    WIDE(std,           rules::std, kX | kOut),
    NONE(argmax),
    NONE(argmin),

    RULE(alias,         same),
    RULE(as_strided,    rules::as_strided),
    RULE(slice,         rules::slice),
    RULE(permute_dims,  rules::permute_dims),
    RULE(reshape_view,  rules::reshape),
    RULE(expand,        same),
    RULE(squeeze,       rules::reshape),
    RULE(expand_dims,   rules::reshape),
    RULE(flip,          rules::flip),
    RULE(unfold,        rules::unfold),
    RULE(diagonal,      rules::diagonal),

    RULE(matmul,        rules::matmul, kY, kX),
    RULE(linear,        rules::linear, kY | kOutIfActivated, kX | kOutIfActivated, kOutIfActivated),
    RULE(vecdot,        rules::vecdot, kY, kX),
    RULE(addmm,         rules::addmm, kNone, kZ, kY),

    RULE(astype,        same),
    RULE(contiguous_copy, same),
    NONE(fill),
    NONE(arange),
    NONE(linspace),
    NONE(eye),
    RULE(tril,          rules::tril),
    RULE(triu,          rules::triu),
    NONE(random_uniform),
    NONE(random_normal),
    NONE(random_int),
    NONE(random_perm),
    NONE(bernoulli),
    RULE(cumulative_sum, rules::cumulative_sum),
    WIDE(cumulative_prod, rules::cumulative_prod, kX | kOut),
    RULE(cumulative_max, rules::cumulative_max, kX | kOut),
    WIDE(softmax,       rules::softmax, kOut),
    WIDE(log_softmax,   rules::log_softmax, kOut),
    WIDE(logsumexp,     rules::logsumexp, kX | kOut),
    RULE(concat,        rules::concat),
    RULE(roll,          rules::roll),
    RULE(pad,           rules::pad),
    RULE(take,          rules::index, kRest),
    RULE(gather,        rules::gather, kRest),
    RULE(scatter,       rules::scatter, kY, kNone, kY),
    RULE(scatter_add,   rules::scatter_add, kNone, kNone, kY),
    RULE(masked_select, rules::masked_select, kRest),
    NONE(nonzero),
    RULE(index,         rules::index, kRest),
    RULE(index_put,     rules::index_put, kRest, kRest, kRest),
    RULE(sort,          rules::sort, kSecond),
    RULE(topk,          rules::topk, kSecond),
    NONE(searchsorted),
    NONE(unique),
    RULE(conv2d,        rules::conv2d, kY, kX),
    RULE(conv2d_input,  rules::conv2d_input, kY, kX),
    RULE(conv2d_weight, rules::conv2d_weight, kY, kX),
    RULE(max_pool2d,    rules::max_pool2d, kSecond),
    RULE(avg_pool2d,    rules::avg_pool2d),
    RULE(avg_pool2d_backward, rules::avg_pool2d_backward),
    RULE(layer_norm,    rules::layer_norm, kX | kY | kSecond, kX | kY | kSecond, kNone),
    NONE(layer_norm_backward),
    RULE(rms_norm,      rules::rms_norm, kX | kY | kSecond, kX | kY | kSecond),
    NONE(rms_norm_backward),
    RULE(batch_norm,    rules::batch_norm, kX | kY | kSecond, kX | kY | kSecond, kX | kY | kSecond),
    NONE(batch_norm_backward),
    RULE(cross_entropy, rules::cross_entropy, kX | kRest | kSecond),
    NONE(cross_entropy_backward),
    RULE(attention,     rules::attention, kAttention, kAttention, kAttention),
    NONE(attention_backward),
    RULE(to_device,     rules::to_device),
    NONE(normal_quantile),
    // Their gradients are autograd::Functions of linalg/.
    NONE(linalg_cholesky),
    NONE(linalg_det),
    NONE(linalg_slogdet),
    NONE(linalg_inv),
    NONE(linalg_solve),
    NONE(linalg_eigh),
    NONE(linalg_eigvalsh),
    NONE(linalg_qr),
    NONE(linalg_svd),
    NONE(linalg_svdvals),
    NONE(linalg_orthonormal_rows),
    NONE(optimizer_step),
    NONE(square_sum_of_all),
};
// clang-format on

constexpr bool rows_follow_ops_def() {
  for (int i = 0; i < static_cast<int>(std::size(kRows)); ++i) {
    if (static_cast<int>(kRows[i].op) != i) return false;
  }
  return std::size(kRows) == kNumOps;
}
static_assert(rows_follow_ops_def(), "one row per op of ops.def, in its order");

}  // namespace

const RuleRow& rule_row(OpId op) noexcept { return kRows[static_cast<int>(op)]; }

}  // namespace baregrad::autograd

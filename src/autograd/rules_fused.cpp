// Gradient rules of the fused ops: one kernel where nobody wants a derivative of the gradient,
// else the same written in public ops.
#include "autograd/rule_functions.h"
#include "baregrad/ops.h"
#include "core/history.h"
#include "ops/dispatch.h"
#include "ops/fused.h"

namespace baregrad::autograd::rules {

namespace {

/// The gradient itself is being recorded: a fused kernel would end the graph.
bool recorded() { return History::recording(); }

/// WantedGradients.
int wanted(const Backward& b) {
  int mode = 0;
  for (int k = 0; k < b.inputs() && k < 3; ++k) mode |= b.needs(k) ? 1 << k : 0;
  return mode;
}

void give_wanted(Backward& b, std::vector<Tensor>& gradients) {
  for (int k = 0; k < b.inputs() && k < 3; ++k) {
    if (b.needs(k)) b.give(k, std::move(gradients[static_cast<std::size_t>(k)]));
  }
}

/// x less its mean (where `centred`) over its deviation along some axes.
struct Normalised {
  Axes axes;
  Tensor rstd;
  Tensor hat;

  Normalised(const Tensor& x, const Dims& over, bool centred, double eps) : axes(over) {
    const Tensor base = centred ? x - baregrad::mean(x, axes, true) : x;
    rstd = rsqrt(baregrad::mean(square(base), axes, true) + eps);
    hat = base * rstd;
  }
  /// The gradient towards x of what g comes back for.
  Tensor back(const Tensor& g, bool centred) const {
    const Tensor rest = g - hat * baregrad::mean(g * hat, axes, true);
    return rstd * (centred ? rest - baregrad::mean(g, axes, true) : rest);
  }
};

/// x[, weight[, bias]] over the last axes.
void row_norm(Backward& b, OpId backward_op, bool centred) {
  const Tensor g = b.grad();
  if (!b.needs(0) && !(b.inputs() > 1 && b.needs(1))) {
    b.give(2, g);
    return;
  }
  const Tensor x = b.input(0);
  const bool weighted = b.inputs() > 1;
  const Tensor weight = weighted ? b.input(1) : Tensor();
  if (!recorded()) {
    NormAttrs attrs = b.attrs<NormAttrs>();
    attrs.wanted = wanted(b);
    const Tensor stats = b.output(1);
    std::vector<Tensor> gradients = weighted
                                        ? run_many(backward_op, {&g, &x, &stats, &weight}, attrs)
                                        : run_many(backward_op, {&g, &x, &stats}, attrs);
    give_wanted(b, gradients);
    return;
  }
  Dims axes;
  for (int i = b.attrs<NormAttrs>().axis; i < x.ndim(); ++i) axes.push_back(i);
  const Normalised norm(x, axes, centred, b.attrs<NormAttrs>().eps);
  if (b.needs(0)) b.give(0, norm.back(weighted ? g * weight : g, centred));
  if (weighted && b.needs(1)) b.give(1, g * norm.hat);
  if (b.inputs() > 2) b.give(2, g);
}

/// [C] as [C, 1, ...], to stand beside [N, C, ...].
Tensor beside(const Tensor& t, const Tensor& x) {
  Dims shape(x.ndim() - 1, 1);
  shape[0] = x.shape()[1];
  return baregrad::reshape(t, shape);
}

}  // namespace

void layer_norm(Backward& b) { row_norm(b, OpId::layer_norm_backward, true); }
void rms_norm(Backward& b) { row_norm(b, OpId::rms_norm_backward, false); }

void batch_norm(Backward& b) {
  const Tensor g = b.grad();
  const Tensor x = b.input(0);
  const Tensor weight = b.input(1);
  const bool training = b.attrs<BatchNormAttrs>().training;
  if (!recorded()) {
    BatchNormAttrs attrs = b.attrs<BatchNormAttrs>();
    attrs.wanted = wanted(b);
    const Tensor stats = b.output(1);
    std::vector<Tensor> gradients =
        run_many(OpId::batch_norm_backward, {&g, &x, &stats, &weight}, attrs);
    give_wanted(b, gradients);
    return;
  }
  Dims axes{0};
  for (int i = 2; i < x.ndim(); ++i) axes.push_back(i);
  const Tensor gw = g * beside(weight, x);
  Tensor hat;
  if (training) {
    const Normalised norm(x, axes, true, b.attrs<BatchNormAttrs>().eps);
    hat = norm.hat;
    if (b.needs(0)) b.give(0, norm.back(gw, true));
  } else {
    const Tensor stats = History::plain(b.output(1));
    const Tensor rstd = beside(stats[1], x);
    hat = (x - beside(stats[0], x)) * rstd;
    if (b.needs(0)) b.give(0, gw * rstd);
  }
  if (b.needs(1)) b.give(1, baregrad::sum(g * hat, axes));
  if (b.needs(2)) b.give(2, baregrad::sum(g, axes));
}

void cross_entropy(Backward& b) {
  const Tensor g = b.grad();
  const Tensor x = b.input(0);
  const Tensor target = b.input(1);
  const bool weighted = b.inputs() > 2;
  const Tensor weight = weighted ? b.input(2) : Tensor();
  const auto& attrs = b.attrs<CrossEntropyAttrs>();
  if (!recorded()) {
    const Tensor stats = b.output(1);
    b.give(0, weighted
                  ? run(OpId::cross_entropy_backward, {&g, &x, &target, &stats, &weight}, attrs)
                  : run(OpId::cross_entropy_backward, {&g, &x, &target, &stats}, attrs));
    return;
  }
  const std::int64_t rows = x.shape()[0];
  const std::int64_t classes = x.shape()[1];
  const double smoothing = attrs.smoothing;
  const Tensor column = baregrad::reshape(target, {rows, 1});
  const Tensor counts = astype(column != attrs.ignored, x.dtype());
  const Tensor hit = astype(column == arange(classes, {}, x.device()), x.dtype()) * counts;
  const Tensor weights = weighted ? weight : ones({classes}, x.dtype(), x.device());
  const Tensor row_weight = baregrad::sum(hit * weights, 1, true);
  // The distribution that each row should have, and its weight.
  const Tensor wished = hit * (row_weight * (1 - smoothing)) +
                        counts * (weights * (smoothing / static_cast<double>(classes)));
  const Tensor total = baregrad::sum(wished, 1, true);
  Tensor slope = attrs.reduction == LossReduction::None ? baregrad::reshape(g, {rows, 1}) : g;
  if (attrs.reduction == LossReduction::Mean) slope = slope / baregrad::sum(row_weight);
  b.give(0, slope * (baregrad::softmax(x, 1) * total - wished));
}

void attention(Backward& b) {
  const Tensor g = b.grad();
  const Tensor q = b.input(0);
  const Tensor k = b.input(1);
  const Tensor v = b.input(2);
  const bool masked = b.inputs() > 3;
  const Tensor mask = masked ? b.input(3) : Tensor();
  const auto& attrs = b.attrs<AttentionAttrs>();
  if (!recorded()) {
    const Tensor out = b.output();
    const Tensor lse = b.output(1);
    std::vector<Tensor> gradients =
        masked ? run_many(OpId::attention_backward, {&g, &q, &k, &v, &out, &lse, &mask}, attrs)
               : run_many(OpId::attention_backward, {&g, &q, &k, &v, &out, &lse}, attrs);
    give_wanted(b, gradients);
    return;
  }
  const double scale = attrs.scale;
  const Tensor weights = attention_weights(q, k, mask, attrs.causal, scale);
  if (b.needs(2)) b.give(2, baregrad::matmul(weights.mT(), g));
  if (!b.needs(0) && !b.needs(1)) return;
  const Tensor towards = baregrad::matmul(g, v.mT());
  const Tensor level = baregrad::sum(towards * weights, -1, true);
  const Tensor scores = weights * (towards - level) * scale;
  if (b.needs(0)) b.give(0, baregrad::matmul(scores, k));
  if (b.needs(1)) b.give(1, baregrad::matmul(scores.mT(), q));
}

}  // namespace baregrad::autograd::rules

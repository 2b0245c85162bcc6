// Cross-entropy: classes go through the fused op, probabilities through log_softmax.
#include "backends/cpu/abi.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/message.h"
#include "ops/dispatch.h"
#include "ops/fused.h"
#include "ops/infer.h"
#include "ops/internal_ops.h"
#include "ops/positions.h"

namespace baregrad {

namespace {

constexpr const char* kCrossEntropy = "cross_entropy";

void check_arguments(const Tensor& logits, const Tensor& target,
                     const CrossEntropyOptions& options) {
  require_defined(logits, "logits", kCrossEntropy);
  require_defined(target, "target", kCrossEntropy);
  if (!is_floating(logits.dtype())) {
    throw DTypeError(message(kCrossEntropy, ": logits must be floating, not ", describe(logits),
                             "; convert them with astype"));
  }
  if (logits.ndim() == 0) {
    throw ShapeError(message(kCrossEntropy,
                             ": logits need an axis of classes, [C] or [N, C, ...], not ",
                             describe(logits)));
  }
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
    throw ValueError(message(kCrossEntropy, ": label_smoothing must lie in [0, 1], got ",
                             options.label_smoothing));
  }
}

/// All axes but the one of classes.
Dims without_classes(const Tensor& logits) {
  Dims shape = logits.shape();
  shape.erase(logits.ndim() == 1 ? 0 : 1);
  return shape;
}

/// The class weights in the compute dtype, or an undefined tensor. No gradient goes to them.
Tensor class_weights(const CrossEntropyOptions& options, const Tensor& logits, std::int64_t classes,
                     DType compute) {
  if (!options.weight.defined()) return {};
  if (!is_floating(options.weight.dtype())) {
    throw DTypeError(
        message(kCrossEntropy, ": weight must be floating, not ", describe(options.weight)));
  }
  if (!(options.weight.shape() == Dims{classes})) {
    throw ShapeError(message(kCrossEntropy, ": weight must have one number per class, [", classes,
                             "] for ", describe(logits), ", not ", describe(options.weight)));
  }
  return converted(options.weight, compute, kCrossEntropy).detach();
}

/// Rows of logits: classes last, everything else one axis.
Tensor as_rows(const Tensor& logits, std::int64_t rows, std::int64_t classes) {
  if (logits.ndim() == 2) return logits;
  return reshape(logits.ndim() == 1 ? logits : moveaxis(logits, {1}, {-1}), {rows, classes});
}

Tensor of_probabilities(const Tensor& logits, const Tensor& target,
                        const CrossEntropyOptions& options, std::int64_t classes, DType compute) {
  if (!(target.shape() == logits.shape())) {
    throw ShapeError(message(kCrossEntropy, ": probabilities must have the shape of the logits, ",
                             describe(logits), ", not ", describe(target)));
  }
  const Tensor weight = class_weights(options, logits, classes, compute);
  const int axis = logits.ndim() == 1 ? 0 : 1;
  const double smoothing = options.label_smoothing;
  Tensor wanted = converted(target, compute, kCrossEntropy);
  if (smoothing != 0) wanted = wanted * (1 - smoothing) + smoothing / static_cast<double>(classes);
  if (weight.defined()) {
    Dims beside(logits.ndim() - axis, 1);
    beside[0] = classes;
    wanted = wanted * reshape(weight, beside);
  }
  const Tensor x = converted(logits, compute, kCrossEntropy);
  Tensor losses = negative(sum(log_softmax(x, axis) * wanted, axis));
  if (options.reduction == Reduction::None) return losses;
  const Tensor total = sum(losses);
  return options.reduction == Reduction::Sum ? total : total / static_cast<double>(losses.numel());
}

}  // namespace

// logits [N, C], classes [N] int64[, weights [C]]. The statistics: greatest and sum of exponentials
// of each row, then the weight of all rows.
std::vector<OutputSpec> infer_cross_entropy(const OpCall& call) {
  const Tensor& x = *call.inputs[0];
  const std::int64_t rows = x.shape()[0];
  const bool each = call.attrs.as<CrossEntropyAttrs>().reduction == LossReduction::None;
  const Dims loss = each ? Dims{rows} : Dims{};
  return {{loss, x.dtype()}, {{2 * rows + 1}, x.dtype()}};
}
// g, logits, classes, the statistics[, weights].
std::vector<OutputSpec> infer_cross_entropy_backward(const OpCall& call) {
  return {{call.inputs[1]->shape(), call.inputs[1]->dtype()}};
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                     const CrossEntropyOptions& options) {
  check_arguments(logits, target, options);
  const std::int64_t classes = logits.shape()[logits.ndim() == 1 ? 0 : 1];
  const DType compute = kernels::compute_dtype(logits.dtype());
  if (is_floating(target.dtype())) {
    return converted(of_probabilities(logits, target, options, classes, compute), logits.dtype(),
                     kCrossEntropy);
  }
  const Dims outer = without_classes(logits);
  if (!(target.shape() == outer)) {
    throw ShapeError(message(kCrossEntropy, ": the classes of ", describe(logits),
                             " must have shape ", to_string(outer), ", not ", describe(target)));
  }
  const std::int64_t rows = checked_numel(outer, compute, kCrossEntropy);
  const Tensor weight = class_weights(options, logits, classes, compute);
  const Tensor picked = reshape(as_int64(target, "target", kCrossEntropy), {rows});
  const Tensor x = as_rows(converted(logits, compute, kCrossEntropy), rows, classes);
  CrossEntropyAttrs attrs;
  attrs.reduction = options.reduction == Reduction::None   ? LossReduction::None
                    : options.reduction == Reduction::Mean ? LossReduction::Mean
                                                           : LossReduction::Sum;
  attrs.smoothing = options.label_smoothing;
  attrs.ignored = options.ignore_index;
  const std::vector<Tensor> results =
      weight.defined() ? run_many(OpId::cross_entropy, {&x, &picked, &weight}, attrs)
                       : run_many(OpId::cross_entropy, {&x, &picked}, attrs);
  const Tensor loss = attrs.reduction == LossReduction::None && !(outer == Dims{rows})
                          ? reshape(results[0], outer)
                          : results[0];
  return converted(loss, logits.dtype(), kCrossEntropy);
}

}  // namespace baregrad

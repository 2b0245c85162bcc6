// gradcheck: gradients against finite differences.
#include <cmath>

#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/message.h"
#include "core/number_text.h"

namespace baregrad::autograd {

namespace {

using Fn = std::function<Tensors(const Tensors&)>;

void check_inputs(const Tensors& inputs, const char* who) {
  bool any = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !inputs[i].requires_grad()) continue;
    any = true;
    if (inputs[i].dtype() == DType::Float64) continue;
    throw DTypeError(message(who, ": input ", i, ", ", describe(inputs[i]),
                             ", must be float64: differences of fewer bits say nothing"));
  }
  if (!any) throw GradError(message(who, ": no input requires a gradient"));
}

/// Fixed weights that are neither equal nor small, so that errors do not cancel.
Tensor weights_like(const Tensor& t, std::size_t k) {
  const Tensor steps = reshape(arange(t.numel(), DType::Float64, t.device()), t.shape());
  return sin(steps * 1.7 + static_cast<double>(k) + 0.4) * 0.7 +
         cos(steps * 0.9 + 2.0 * static_cast<double>(k)) * 0.4 + 0.1;
}

bool counts(const Tensor& output) { return output.defined() && is_floating(output.dtype()); }

/// Nothing that a gradient could be compared for is an error, not a success.
void check_outputs(const Tensors& outputs, const char* who) {
  if (outputs.empty()) throw ValueError(message(who, ": the function gave no tensor to check"));
  for (const Tensor& t : outputs) {
    if (counts(t)) return;
  }
  throw ValueError(message(who, ": the function gave ", outputs.size(), " outputs (the first ",
                           outputs[0].defined() ? describe(outputs[0]) : "undefined",
                           "), none of which is floating"));
}

/// The outputs as one number: the sum of all elements by weight.
double weighted(const Fn& fn, const Tensors& inputs, const Tensors& weights) {
  const Tensors outputs = fn(inputs);
  double total = 0;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (weights[k].defined()) total += sum(outputs[k] * weights[k]).item<double>();
  }
  return total;
}

/// Central differences of two steps, extrapolated: the error falls with the fourth power.
class Difference {
 public:
  Difference(const Fn& fn, const Tensors& inputs, const Tensors& weights, double step)
      : fn_(fn), weights_(weights), step_(step) {
    for (const Tensor& t : inputs) copies_.push_back(t.defined() ? clone(t.detach()) : t);
  }
  double at(std::size_t input, std::int64_t element) {
    const Tensor x = narrow(reshape(copies_[input], {-1}), 0, element, 1);
    const auto before = x.item<double>();
    const double h = step_ * std::max(1.0, std::fabs(before));
    const auto slope = [&](double by) {
      fill_(x, before + by);
      const double above = weighted(fn_, copies_, weights_);
      fill_(x, before - by);
      const double below = weighted(fn_, copies_, weights_);
      fill_(x, before);
      return (above - below) / (2 * by);
    };
    return (4 * slope(h / 2) - slope(h)) / 3;
  }

 private:
  const Fn& fn_;
  Tensors copies_;
  const Tensors& weights_;
  double step_;
};

}  // namespace

namespace {

std::string compared(const Fn& fn, const Tensors& inputs, const GradcheckOptions& options,
                     const char* who) {
  check_inputs(inputs, who);
  const enable_grad on;
  const Tensors outputs = fn(inputs);
  check_outputs(outputs, who);
  Tensors weights(outputs.size());
  Tensors differentiable;
  Tensors seeds;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!counts(outputs[k])) continue;
    weights[k] = weights_like(outputs[k], k);
    if (!outputs[k].requires_grad()) continue;
    differentiable.push_back(outputs[k]);
    seeds.push_back(astype(weights[k], outputs[k].dtype()));
  }
  Tensors wanted;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !inputs[i].requires_grad()) continue;
    wanted.push_back(inputs[i]);
    which.push_back(i);
  }
  Tensors analytic(wanted.size());
  if (!differentiable.empty()) {
    analytic = grad(differentiable, wanted, seeds, {.retain_graph = true, .allow_unused = true});
  }
  const no_grad off;
  Difference difference(fn, inputs, weights, options.step);
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const std::size_t i = which[k];
    const std::vector<double> ours =
        analytic[k].defined() ? analytic[k].to_vector<double>()
                              : std::vector<double>(static_cast<std::size_t>(inputs[i].numel()));
    for (std::int64_t e = 0; e < inputs[i].numel(); ++e) {
      const double numeric = difference.at(i, e);
      const double computed = ours[static_cast<std::size_t>(e)];
      const double room = options.atol + options.rtol * std::fabs(numeric);
      if (std::fabs(computed - numeric) <= room) continue;
      return message("input ", i, ", ", describe(inputs[i]), ", element ", e, ": the gradient is ",
                     number_text(computed), ", finite differences give ", number_text(numeric),
                     " (apart by ", number_text(std::fabs(computed - numeric)), ", allowed ",
                     number_text(room), ")");
    }
  }
  return "";
}

}  // namespace

std::string gradcheck(const Fn& fn, const Tensors& inputs, const GradcheckOptions& options) {
  return compared(fn, inputs, options, "gradcheck");
}

std::string gradgradcheck(const Fn& fn, const Tensors& inputs, const GradcheckOptions& options) {
  constexpr const char* kWho = "gradgradcheck";
  check_inputs(inputs, kWho);
  const enable_grad on;
  // The gradient as a function of the inputs and of what it starts from.
  const Tensors outputs = fn(inputs);
  check_outputs(outputs, kWho);
  Tensors all = inputs;
  std::vector<std::size_t> differentiable;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!counts(outputs[k]) || !outputs[k].requires_grad()) continue;
    differentiable.push_back(k);
    all.push_back(weights_like(outputs[k], k).detach().requires_grad_());
  }
  if (differentiable.empty()) {
    throw GradError(message(kWho, ": no output depends on an input that requires a gradient"));
  }
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined() && inputs[i].requires_grad()) wanted.push_back(i);
  }
  const Fn gradient = [&](const Tensors& at) {
    const bool recorded = is_grad_enabled();
    const enable_grad recording;
    Tensors given(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(inputs.size()));
    Tensors with_respect_to;
    for (const std::size_t i : wanted) {
      // Finite differences bring plain copies.
      if (!given[i].requires_grad()) given[i] = given[i].detach().requires_grad_();
      with_respect_to.push_back(given[i]);
    }
    const Tensors results = fn(given);
    Tensors from;
    Tensors seeds;
    for (std::size_t k = 0; k < differentiable.size(); ++k) {
      from.push_back(results[differentiable[k]]);
      seeds.push_back(at[inputs.size() + k]);
    }
    return grad(from, with_respect_to, seeds, {.create_graph = recorded, .allow_unused = true});
  };
  return compared(gradient, all, options, kWho);
}

}  // namespace baregrad::autograd

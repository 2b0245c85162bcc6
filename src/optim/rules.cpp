// The optimizers: their state tensors and the numbers of a step. Their options are in optim.h.
#include <cmath>
#include <utility>

#include "optim/rule.h"

namespace baregrad::optim {

using kernels::StepNumbers;
using kernels::StepRule;

namespace {

using Choice = OptimizerRule::Choice;

/// The numbers that all optimizers set in the same way.
template <class Options>
StepNumbers common_numbers(const Options& o) {
  StepNumbers n;
  n.lr = o.lr;
  n.sign = o.maximize ? -1 : 1;
  return n;
}

// Row<Options> is the optimizer with these options:
//   kStates    names of the state tensors of a parameter, in the order of the kernel's operands
//   choose     the kernel for given options, and the states that it takes
//   prepare    the numbers that the kernel takes for a parameter's t-th step
// and, where needed,
//   initial    the initial value of the states' elements; zero without it
//   problem    the problem with a combination of options that are valid one by one
template <class Options>
struct Row;

template <>
struct Row<SGDOptions> {
  using Options = SGDOptions;
  static constexpr const char* kStates[] = {"momentum_buffer"};
  static Choice choose(const Options& o) {
    return o.momentum != 0 ? Choice{StepRule::SgdMomentum, 1} : Choice{StepRule::Sgd, 0};
  }
  static StepNumbers prepare(const Options& o, double) {
    StepNumbers n = common_numbers(o);
    n.weight_decay = o.weight_decay;
    n.beta1 = o.momentum;
    n.rate1 = 1 - o.dampening;
    n.nesterov = o.nesterov;
    return n;
  }
  static const char* problem(const Options& o) {
    return o.nesterov && (o.momentum <= 0 || o.dampening != 0)
               ? "nesterov needs a momentum and no dampening"
               : nullptr;
  }
};

template <class Options, bool kDecoupled>
struct AdamRow {
  static constexpr const char* kStates[] = {"exp_avg", "exp_avg_sq"};
  static Choice choose(const Options&) { return {StepRule::Adam, 0b11}; }
  static StepNumbers prepare(const Options& o, double t) {
    StepNumbers n = common_numbers(o);
    n.lr = o.lr / (1 - std::pow(o.beta1, t));
    if constexpr (kDecoupled) {
      n.shrink = 1 - o.lr * o.weight_decay;
    } else {
      n.weight_decay = o.weight_decay;
    }
    n.beta1 = o.beta1;
    n.rate1 = 1 - o.beta1;
    n.beta2 = o.beta2;
    n.rate2 = 1 - o.beta2;
    n.scale2 = 1 / std::sqrt(1 - std::pow(o.beta2, t));
    n.eps = o.eps;
    return n;
  }
};
template <>
struct Row<AdamOptions> : AdamRow<AdamOptions, false> {};
template <>
struct Row<AdamWOptions> : AdamRow<AdamWOptions, true> {};

template <>
struct Row<RMSpropOptions> {
  using Options = RMSpropOptions;
  static constexpr const char* kStates[] = {"square_avg", "grad_avg", "momentum_buffer"};
  static Choice choose(const Options& o) {
    const bool momentum = o.momentum > 0;
    if (o.centered) {
      return momentum ? Choice{StepRule::RmsPropCenteredMomentum, 0b111}
                      : Choice{StepRule::RmsPropCentered, 0b011};
    }
    return momentum ? Choice{StepRule::RmsPropMomentum, 0b101} : Choice{StepRule::RmsProp, 0b001};
  }
  static StepNumbers prepare(const Options& o, double) {
    StepNumbers n = common_numbers(o);
    n.weight_decay = o.weight_decay;
    n.beta2 = o.alpha;
    n.rate2 = 1 - o.alpha;
    n.eps = o.eps;
    n.momentum = o.momentum;
    return n;
  }
};

template <>
struct Row<AdagradOptions> {
  using Options = AdagradOptions;
  static constexpr const char* kStates[] = {"sum"};
  static Choice choose(const Options&) { return {StepRule::Adagrad, 1}; }
  static StepNumbers prepare(const Options& o, double t) {
    StepNumbers n = common_numbers(o);
    n.lr = o.lr / (1 + (t - 1) * o.lr_decay);
    n.weight_decay = o.weight_decay;
    n.eps = o.eps;
    return n;
  }
  static double initial(const Options& o) { return o.initial_accumulator_value; }
};

template <>
struct Row<LionOptions> {
  using Options = LionOptions;
  static constexpr const char* kStates[] = {"exp_avg"};
  static Choice choose(const Options&) { return {StepRule::Lion, 1}; }
  static StepNumbers prepare(const Options& o, double) {
    StepNumbers n = common_numbers(o);
    n.shrink = 1 - o.lr * o.weight_decay;
    n.beta1 = o.beta1;
    n.rate1 = 1 - o.beta1;
    n.beta2 = o.beta2;
    n.rate2 = 1 - o.beta2;
    return n;
  }
};

/// A row as an OptimizerRule, whose functions take plain arrays of values.
template <class Options>
constexpr OptimizerRule rule_of() {
  return {
      .name = Options::kName,
      .options = kOptionRows<Options>,
      .states = Row<Options>::kStates,
      .choose =
          [](const double* values) { return Row<Options>::choose(options_of<Options>(values)); },
      .prepare = [](const double* values,
                    double t) { return Row<Options>::prepare(options_of<Options>(values), t); },
      .initial = [](const double* values) -> double {
        if constexpr (requires(const Options& o) { Row<Options>::initial(o); }) {
          return Row<Options>::initial(options_of<Options>(values));
        }
        return 0;
      },
      .problem = [](const double* values) -> const char* {
        if constexpr (requires(const Options& o) { Row<Options>::problem(o); }) {
          return Row<Options>::problem(options_of<Options>(values));
        }
        return nullptr;
      },
  };
}
template <class Options>
constexpr OptimizerRule kRule = rule_of<Options>();

}  // namespace

template <class O>
OptimizerWith<O>::OptimizerWith(Tensors params, const O& options) : Optimizer(kRule<O>) {
  add_group(std::move(params), options);
}
template <class O>
void OptimizerWith<O>::add_group(Tensors params, const O& options) {
  add(std::move(params), values_of(options));
}

template class OptimizerWith<SGDOptions>;
template class OptimizerWith<AdamOptions>;
template class OptimizerWith<AdamWOptions>;
template class OptimizerWith<RMSpropOptions>;
template class OptimizerWith<AdagradOptions>;
template class OptimizerWith<LionOptions>;

}  // namespace baregrad::optim
